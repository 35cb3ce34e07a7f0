(* Theorem T3 of the contract: bounds (24) and (25) of the log-sum-exp.

   In words.  w_j = exp(s_j - M) and W, p, D, the errors c, b, h and their bounds are those of
   OutputBound.v; the exact log-sum-exp of the row is L = M + ln W.  The kernel ends with a
   reference m and a denominator l = e^{M - m} (sum_j w_j e^{c_j + b_j} + h).  In exact arithmetic
   on these two |m + ln l - L| is at most

     r = max( ln(sum p_j e^{C_j + B_j} + H / W), - ln(sum p_j e^{-C_j - B_j} - H / W) ).

   The kernel's number carries further errors: dm of m (relative), dl and alpha of the logarithm
   (relative, absolute), dt of their sum and of its storage.  With |m| <= m_max, |ln l| <= l_max

     tail(m_max, l_max, x) = e^{TH} [expm1(U_m) m_max + expm1(U_l + U_2) l_max + e^{U_2} alpha]
                             + expm1(TH) x                                                    (24)
     |L^ - L| <= r + tail(m_max, l_max, |L| + r)                                              (25)

   and l_max = ln n + r + |M - m| will do when M is the largest score of n keys. *)

Require Import Reals Lra List.
From ringproof Require Import Sums OutputBound.
Import ListNotations.
Open Scope R_scope.

Section Row.

Context {Key : Type} (keys : list Key) (w v : Key -> R).
Hypothesis some_key : keys <> [].
Hypothesis w_positive : forall k, In k keys -> 0 < w k.

Variables e E : @errors Key.
Hypothesis errors_within : within keys e E.
Hypothesis D_positive : 0 < D keys w E.

Notation W := (W keys w).
Notation D := (D keys w E).
Notation denominator := (denominator keys w e).

(* The largest denominator that the budgets allow, over W; D is the smallest. *)
Definition U : R := sum (fun k => p keys w k * exp (c E k + b E k)) keys + h E / W.

Definition r : R := Rmax (ln U) (- ln D).

Lemma denominator_small : denominator <= W * U.
Proof.
  pose proof (W_positive keys w some_key w_positive).
  destruct errors_within as (budgets & _ & small%Rabs_bounds & _).
  unfold U, OutputBound.denominator; rewrite Rmult_plus_distr_l, W_times by assumption.
  replace (W * (h E / W)) with (h E) by (field; lra).
  apply Rplus_le_compat; [apply sum_le; intros k i | lra].
  apply Rmult_le_compat_l; [left; auto | apply exp_le].
  destruct (budgets k i) as (?%Rabs_bounds & _ & ?%Rabs_bounds); lra.
Qed.

Theorem log_denominator_bound : Rabs (ln denominator - ln W) <= r.
Proof.
  pose proof (W_positive keys w some_key w_positive) as PW; pose proof denominator_small as above.
  pose proof (denominator_large keys w some_key w_positive e E errors_within) as below.
  pose proof (denominator_positive keys w some_key w_positive E D_positive).
  assert (PU : 0 < U) by (apply (Rmult_lt_reg_l W); lra).
  apply ln_le in above; [|lra]; apply ln_le in below; [|assumption].
  rewrite ln_mult in above, below by assumption.
  pose proof (Rmax_l (ln U) (- ln D)); pose proof (Rmax_r (ln U) (- ln D)).
  unfold r; apply Rabs_le; lra.
Qed.

(* ---------- the kernel's last steps ---------- *)

Variables M m : R.                                  (* the exact reference, and the kernel's *)

Definition L : R := M + ln W.
Definition l_hat : R := exp (M - m) * denominator.  (* the kernel's l *)

Lemma l_hat_log : ln l_hat = M - m + ln denominator.
Proof.
  pose proof (denominator_large keys w some_key w_positive e E errors_within).
  pose proof (denominator_positive keys w some_key w_positive E D_positive).
  unfold l_hat; rewrite ln_mult, ln_exp by (try apply exp_pos; lra); reflexivity.
Qed.

Theorem lse_of_exact_steps : Rabs (m + ln l_hat - L) <= r.
Proof.
  rewrite l_hat_log; unfold L.
  replace (m + (M - m + ln denominator) - (M + ln W)) with (ln denominator - ln W) by ring.
  apply log_denominator_bound.
Qed.

Variables dm dl d2 dt alpha : R.                    (* errors of the last steps ... *)
Variables U_m U_l U_2 TH alpha_max : R.             (* ... and their bounds *)
Hypothesis dm_small : Rabs dm <= U_m.               (* conversions of m: n_m hat(u_sm) *)
Hypothesis dl_small : Rabs dl <= U_l.               (* of the logarithm: hat(eps_log) *)
Hypothesis d2_small : Rabs d2 <= U_2.               (* of its conversion: 2 hat(u_sm) *)
Hypothesis dt_small : Rabs dt <= TH.                (* of the sum and its storage *)
Hypothesis alpha_small : Rabs alpha <= alpha_max.

Definition L_hat : R := (m * exp dm + (ln l_hat * exp dl + alpha) * exp d2) * exp dt.

(* (24) *)
Definition tail (m_max l_max L_max : R) : R :=
  exp TH * (expm1 U_m * m_max + expm1 (U_l + U_2) * l_max + exp U_2 * alpha_max) + expm1 TH * L_max.

Lemma last_steps m_max l_max L_max :
  Rabs m <= m_max -> Rabs (ln l_hat) <= l_max -> Rabs (m + ln l_hat) <= L_max ->
  Rabs (L_hat - (m + ln l_hat)) <= tail m_max l_max L_max.
Proof.
  intros; unfold L_hat, tail; set (y := ln l_hat) in *.
  replace ((m * exp dm + (y * exp dl + alpha) * exp d2) * exp dt - (m + y)) with
    (exp dt * (expm1 dm * m + expm1 (dl + d2) * y + exp d2 * alpha) + expm1 dt * (m + y))
    by (unfold expm1; rewrite exp_plus; ring).
  apply Rabs_plus_le; apply Rabs_mult_le; auto using Rabs_exp_le, Rabs_expm1_le.
  apply Rabs_plus_le; [apply Rabs_plus_le|]; apply Rabs_mult_le;
      auto using Rabs_exp_le, Rabs_expm1_le.
  apply Rabs_expm1_le, Rabs_plus_le; assumption.
Qed.

(* (25), for kernels without merges by log-sum-exp *)
Theorem lse_bound m_max l_max : Rabs m <= m_max -> Rabs (ln l_hat) <= l_max ->
  Rabs (L_hat - L) <= r + tail m_max l_max (Rabs L + r).
Proof.
  intros; replace (L_hat - L) with ((m + ln l_hat - L) + (L_hat - (m + ln l_hat))) by ring.
  apply Rabs_plus_le; [apply lse_of_exact_steps | apply last_steps; try assumption].
  replace (m + ln l_hat) with (L + (m + ln l_hat - L)) by ring.
  apply Rabs_plus_le; [lra | apply lse_of_exact_steps].
Qed.

(* (25), where the running log-sum-exp itself was merged and is stored once more *)
Theorem lse_bound_stored x u : Rabs (x - L) <= r -> Rabs dt <= u ->
  Rabs (x * exp dt - L) <= r + expm1 u * (Rabs L + r).
Proof.
  intros near small; replace (x * exp dt - L) with ((x - L) + expm1 dt * (L + (x - L)))
    by (unfold expm1; ring).
  apply Rabs_plus_le, Rabs_mult_le; auto using Rabs_expm1_le, Rabs_plus_le, Rle_refl.
Qed.

(* When M is the largest score, 1 <= W <= n, and the kernel's logarithm is not large. *)
Hypothesis w_at_most_one : forall k, In k keys -> w k <= 1.
Hypothesis maximum_attained : exists k, In k keys /\ w k = 1.

Theorem log_l_small : Rabs (ln l_hat) <= ln (INR (length keys)) + r + Rabs (M - m).
Proof.
  assert (Z : forall q, (forall k, In k q -> 0 < w k) -> 0 <= sum w q)
    by (intros q P; apply sum_nonneg; intros; left; auto).
  assert (low : 1 <= W).
  { destruct maximum_attained as (k & i & one); unfold OutputBound.W.
    apply in_split in i as (x & y & ->); rewrite sum_app; cbn [sum]; rewrite one.
    assert (0 <= sum w x) by (apply Z; intros; apply w_positive, in_or_app; auto).
    assert (0 <= sum w y) by (apply Z; intros; apply w_positive, in_or_app; simpl; auto).
    lra. }
  assert (high : W <= INR (length keys)).
  { rewrite <- sum_ones; apply sum_le; assumption. }
  apply ln_le in high; [|lra]; apply ln_le in low; [rewrite ln_1 in low | lra].
  rewrite l_hat_log; replace (M - m + ln denominator) with
    ((ln W + (ln denominator - ln W)) + (M - m)) by ring.
  apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_le;
      lra | apply log_denominator_bound] | lra].
Qed.

End Row.

(* ---------- not vacuous ---------- *)

(* One key, a shared error of 1/4, an underflow of 1/8 and a rounding of every last step: the
   hypotheses of log_l_small and lse_bound hold together. *)
Theorem lse_example :
  let e := Errors (fun _ : unit => / 4) (fun _ => 0) (fun _ => 0) 0 (/ 8) 0 0 0 in
  let row := [tt] in let w := fun _ : unit => 1 in
  let l := l_hat row w e 1 2 in
  Rabs (ln l) <= ln (INR 1) + r row w e + Rabs (1 - 2)
  /\ Rabs (L_hat row w e 1 2 (/ 8) (/ 8) (/ 8) (/ 8) (/ 8) - L row w 1)
     <= r row w e + tail (/ 8) (/ 8) (/ 8) (/ 8) (/ 8) 2 (Rabs (ln l)) (Rabs (L row w 1) + r row w
         e).
Proof.
  intros e row w l; assert (some : row <> []) by discriminate.
  assert (positive : forall k, In k row -> 0 < w k) by (intros; unfold w; lra).
  assert (inside : within row e e)
    by (repeat split; cbn; rewrite ?Rabs_R0; try (rewrite Rabs_right); lra).
  assert (large : 0 < D row w e).
  { unfold D, p, W, w; cbn; pose proof (exp_at_least (- / 4 - 0)).
    unfold Rdiv; rewrite !Rplus_0_r, Rinv_1; lra. }
  split.
  - apply (log_l_small row w some positive e e inside large); unfold w; [intros; lra|].
    exists tt; split; [left|]; reflexivity.
  - apply lse_bound; trivial; try apply Rle_refl; rewrite Rabs_right; lra.
Qed.
