(* Theorem T1 of the contract: bounds (21) and (22) of one output element before its last rounding.

   In words.  One query row with keys j, positive weights w_j (exp(s_j - M) for any M), one column
   of values v_j.  W = sum w_j, p_j = w_j / W, o = sum p_j v_j.  The kernel's value is supposed to
   be

     o^ = (sum_j w_j e^{c_j + a_j} v_j + g + W pt) / (sum_j w_j e^{c_j + b_j} + h) * e^t + g2

   where c_j are errors that numerator and denominator share, a_j those of the numerator alone, b_j
   those of the denominator alone, t that of the last division, and g, h, pt, g2 absolute errors.
   Capital letters bound their sizes.  With D = sum_j p_j e^{-C_j - B_j} - H / W > 0:

     e0 = { sum p_j expm1(C_j) |v_j - o| + sum p_j e^{C_j} [expm1(A_j) |v_j| + expm1(B_j) |o|]
            + (G + H |o|) / W + Pt } / D
     |o^ - o| <= e^T e0 + expm1(T) |o| + G2                                                    (21)

   and, with |v_j - o| <= X, |v_j| <= V, A_j <= A, B_j <= B for every key, e0 may be replaced by

     X + e^B (1 + H / (W D)) (expm1(A) + expm1(B)) V + ((G + H V) / W + Pt) / D                (22)

   which shared errors, however large, enlarge only through D.  Nothing is dropped, and nothing is
   assumed of signs, order of keys, blocks or maxima.  The last section shows that the hypotheses
   can be met and the bound reached. *)

Require Import Reals Lra List.
From ringproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Section Row.

Context {Key : Type} (keys : list Key) (w v : Key -> R).

(* ---------- the exact answer ---------- *)

Definition W : R := sum w keys.
Definition p (k : Key) : R := w k / W.
Definition o : R := sum (fun k => p k * v k) keys.

(* ---------- the kernel's answer ---------- *)

(* The errors of a kernel, or bounds of their sizes: the same fields serve for both. *)
Record errors := Errors {
  c : Key -> R;   (* per key, in numerator and denominator: score, exp, rescaling factors *)
  a : Key -> R;   (* per key, in the numerator: cast of P, accumulation of o *)
  b : Key -> R;   (* per key, in the denominator: accumulation of l *)
  g : R;          (* absolute, in the numerator: underflow *)
  h : R;          (* absolute, in the denominator: underflow *)
  pt : R;         (* absolute, in the numerator, in units of W: underflow of stored partials *)
  t : R;          (* relative, of the quotient: the last division *)
  g2 : R          (* absolute, of the answer: underflow of the last division *)
}.

Definition within (e E : errors) : Prop :=
  (forall k, In k keys -> Rabs (c e k) <= c E k /\ Rabs (a e k) <= a E k /\ Rabs (b e k) <= b E k)
  /\ Rabs (g e) <= g E /\ Rabs (h e) <= h E /\ Rabs (pt e) <= pt E
  /\ Rabs (t e) <= t E /\ Rabs (g2 e) <= g2 E.

Definition numerator (e : errors) : R :=
  sum (fun k => w k * exp (c e k + a e k) * v k) keys + g e + W * pt e.
Definition denominator (e : errors) : R := sum (fun k => w k * exp (c e k + b e k)) keys + h e.
Definition o_hat (e : errors) : R := numerator e / denominator e * exp (t e) + g2 e.

(* ---------- the bound ---------- *)

Definition D (E : errors) : R := sum (fun k => p k * exp (- c E k - b E k)) keys - h E / W.

Definition e0 (E : errors) : R :=
  (sum (fun k => p k * (expm1 (c E k) * Rabs (v k - o))) keys
   + sum (fun k => p k * (exp (c E k) * (expm1 (a E k) * Rabs (v k) + expm1 (b E k) * Rabs o))) keys
   + (g E + h E * Rabs o) / W + pt E) / D E.

(* What the last division adds to a bound of the quotient. *)
Definition after_division (E : errors) (bound : R) : R :=
  exp (t E) * bound + expm1 (t E) * Rabs o + g2 E.

Hypothesis some_key : keys <> [].
Hypothesis w_positive : forall k, In k keys -> 0 < w k.

Lemma W_positive : 0 < W.
Proof. apply sum_positive; assumption. Qed.

Lemma p_positive k : In k keys -> 0 < p k.
Proof. intros; apply Rdiv_lt_0_compat; auto using W_positive. Qed.

Lemma p_adds_to_one : sum p keys = 1.
Proof.
  pose proof W_positive; rewrite (sum_eq p (fun k => / W * w k)) by (intros; unfold p, Rdiv; ring).
  rewrite sum_scale; fold W; field; lra.
Qed.

(* W times a mean is a sum with the weights w. *)
Lemma W_times f : W * sum (fun k => p k * f k) keys = sum (fun k => w k * f k) keys.
Proof.
  pose proof W_positive; rewrite <- sum_scale; apply sum_eq; intros; unfold p; field; lra.
Qed.

Lemma deviations_cancel : sum (fun k => w k * (v k - o)) keys = 0.
Proof.
  rewrite <- W_times, (sum_eq _ (fun k => p k * v k + - o * p k)) by (intros; ring).
  rewrite sum_plus, sum_scale, p_adds_to_one; fold o; ring.
Qed.

(* The heart of (21): the error of the quotient, times the denominator. *)
Lemma residual e : numerator e - o * denominator e
  = sum (fun k => w k * (expm1 (c e k) * (v k - o))) keys
    + sum (fun k => w k * (exp (c e k) * (expm1 (a e k) * v k - expm1 (b e k) * o))) keys
    + (g e - o * h e) + W * pt e.
Proof.
  unfold numerator, denominator.
  replace (_ - _) with
    (sum (fun k => w k * exp (c e k + a e k) * v k) keys
     + - o * sum (fun k => w k * exp (c e k + b e k)) keys
     + - 1 * sum (fun k => w k * (v k - o)) keys
     + (g e - o * h e) + W * pt e) by (rewrite deviations_cancel; ring).
  rewrite <- !sum_scale, <- !sum_plus; f_equal; f_equal; apply sum_eq; intros k _.
  unfold expm1; rewrite !exp_plus; ring.
Qed.

Section Bound.

Variables e E : errors.
Hypothesis errors_within : within e E.
Hypothesis D_positive : 0 < D E.

Lemma budgets k : In k keys ->
  Rabs (c e k) <= c E k /\ Rabs (a e k) <= a E k /\ Rabs (b e k) <= b E k.
Proof. apply errors_within. Qed.

Lemma denominator_large : W * D E <= denominator e.
Proof.
  pose proof W_positive; destruct errors_within as (_ & _ & small%Rabs_bounds & _).
  unfold D, denominator; rewrite Rmult_minus_distr_l, W_times.
  replace (W * (h E / W)) with (h E) by (field; lra).
  apply Rplus_le_compat; [apply sum_le; intros k i | lra].
  apply Rmult_le_compat_l; [left; auto | apply exp_le].
  destruct (budgets k i) as (?%Rabs_bounds & _ & ?%Rabs_bounds); lra.
Qed.

Lemma denominator_positive : 0 < W * D E.
Proof. apply Rmult_lt_0_compat; auto using W_positive. Qed.

Lemma residual_small : Rabs (numerator e - o * denominator e) <= W * D E * e0 E.
Proof.
  pose proof W_positive; destruct errors_within as (_ & small_g & small_h & small_pt & _).
  replace (W * D E * e0 E) with
    (sum (fun k => w k * (expm1 (c E k) * Rabs (v k - o))) keys
     + sum (fun k => w k * (exp (c E k)
            * (expm1 (a E k) * Rabs (v k) + expm1 (b E k) * Rabs o))) keys
     + (g E + Rabs o * h E) + W * pt E)
    by (rewrite <- !W_times; unfold e0; field; lra).
  rewrite residual; apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_plus_le|]|].
  - apply sum_abs_le; intros k i; destruct (budgets k i) as (? & _); pose proof (w_positive k i).
    apply Rabs_mult_le; [rewrite Rabs_right; lra | apply Rabs_mult_le;
        [now apply Rabs_expm1_le | lra]].
  - apply sum_abs_le; intros k i; destruct (budgets k i) as (? & ? & ?);
      pose proof (w_positive k i).
    apply Rabs_mult_le; [rewrite Rabs_right; lra|]; apply Rabs_mult_le; [now apply Rabs_exp_le|].
    apply Rabs_minus_le; apply Rabs_mult_le; try lra; now apply Rabs_expm1_le.
  - apply Rabs_minus_le; [assumption | apply Rabs_mult_le; lra].
  - apply Rabs_mult_le; [rewrite Rabs_right|]; lra.
Qed.

Theorem quotient_bound : Rabs (numerator e / denominator e - o) <= e0 E.
Proof.
  pose proof denominator_positive; pose proof denominator_large.
  replace (numerator e / denominator e - o) with ((numerator e - o * denominator e) / denominator e)
    by (field; lra).
  replace (e0 E) with (W * D E * e0 E / (W * D E)) by (field; split; pose proof W_positive; lra).
  apply Rabs_div_le; auto using residual_small.
Qed.

Lemma division_bound bound : Rabs (numerator e / denominator e - o) <= bound ->
  Rabs (o_hat e - o) <= after_division E bound.
Proof.
  destruct errors_within as (_ & _ & _ & _ & small_t & small_g2); intros small.
  unfold o_hat, after_division; set (q := numerator e / denominator e) in *.
  replace (q * exp (t e) + g2 e - o) with (exp (t e) * (q - o) + expm1 (t e) * o + g2 e)
    by (unfold expm1; ring).
  apply Rabs_plus_le; [apply Rabs_plus_le; apply Rabs_mult_le; try lra | assumption];
    [now apply Rabs_exp_le | now apply Rabs_expm1_le].
Qed.

(* (21) *)
Theorem output_bound : Rabs (o_hat e - o) <= after_division E (e0 E).
Proof. apply division_bound, quotient_bound. Qed.

(* ---------- the convex form ---------- *)

Variables X V A_max B_max : R.
Hypothesis deviations_small : forall k, In k keys -> Rabs (v k - o) <= X.
Hypothesis values_small : forall k, In k keys -> Rabs (v k) <= V.
Hypothesis budgets_small : forall k, In k keys -> a E k <= A_max /\ b E k <= B_max.

Definition e_convex : R :=
  X + exp B_max * (1 + h E / (W * D E)) * (expm1 A_max + expm1 B_max) * V
  + ((g E + h E * V) / W + pt E) / D E.

(* The kernel's own weights, and the mean that they give. *)
Definition q (k : Key) : R := w k * exp (c e k).
Definition Q : R := sum q keys.
Definition mean : R := sum (fun k => q k * v k) keys / Q.

Lemma q_positive k : In k keys -> 0 < q k.
Proof. intros; apply Rmult_lt_0_compat; auto using exp_pos. Qed.

Lemma Q_positive : 0 < Q.
Proof. apply sum_positive; auto using q_positive. Qed.

Lemma mean_within f top : (forall k, In k keys -> Rabs (f k) <= top) ->
  Rabs (sum (fun k => q k * f k) keys / Q) <= top.
Proof.
  intros below; pose proof Q_positive; replace top with (top * Q / Q) by (field; lra).
  apply Rabs_div_le; [lra | lra | apply weighted_sum_le; [intros; left;
      auto using q_positive | auto]].
Qed.

Lemma mean_near_o : Rabs (mean - o) <= X.
Proof.
  pose proof Q_positive; replace (mean - o) with (sum (fun k => q k * (v k - o)) keys / Q).
  - apply mean_within, deviations_small.
  - rewrite (sum_eq _ (fun k => q k * v k + - o * q k)) by (intros; ring).
    rewrite sum_plus, sum_scale; fold Q; unfold mean; field; lra.
Qed.

(* The kernel's weights are at most so much larger than its denominator. *)
Lemma Q_over_denominator : Q / denominator e <= exp B_max * (1 + h E / (W * D E)).
Proof.
  pose proof denominator_positive; pose proof denominator_large; pose proof (exp_pos B_max).
  destruct errors_within as (_ & _ & small%Rabs_bounds & _).
  assert (L : Q <= exp B_max * (denominator e + h E)).
  { replace (denominator e + h E) with
      (sum (fun k => w k * exp (c e k + b e k)) keys + (h e + h E)) by (unfold denominator; ring).
    apply Rle_trans with (exp B_max * sum (fun k => w k * exp (c e k + b e k)) keys);
      [|apply Rmult_le_compat_l; lra].
    rewrite <- sum_scale; apply sum_le; intros k i; unfold q; pose proof (w_positive k i).
    replace (exp B_max * (w k * exp (c e k + b e k))) with (w k * exp (B_max + (c e k + b e k)))
      by (rewrite (exp_plus B_max); ring).
    apply Rmult_le_compat_l; [lra | apply exp_le].
    destruct (budgets k i) as (_ & _ & ?%Rabs_bounds); destruct (budgets_small k i); lra. }
  apply Rle_trans with (exp B_max * (denominator e + h E) / denominator e).
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra | exact L].
  - replace (_ / denominator e) with (exp B_max * (1 + h E / denominator e)) by (field; lra).
    apply Rmult_le_compat_l; [lra|]; apply Rplus_le_compat_l, Rmult_le_compat_l; [lra|].
    apply Rinv_le_contravar; lra.
Qed.

Lemma quotient_bound_convex : Rabs (numerator e / denominator e - o) <= e_convex.
Proof.
  pose proof W_positive; pose proof Q_positive.
  pose proof denominator_positive; pose proof denominator_large.
  destruct errors_within as (_ & small_g & small_h & small_pt & _).
  assert (mean_small : Rabs mean <= V) by (apply mean_within, values_small).
  set (f k := expm1 (a e k) * v k - mean * expm1 (b e k)).
  assert (E1 : numerator e / denominator e - o
    = (mean - o) + sum (fun k => q k * f k) keys / Q * (Q / denominator e)
      + (g e - mean * h e + W * pt e) / denominator e).
  { assert (S : sum (fun k => q k * f k) keys
        = (numerator e - g e - W * pt e) - mean * (denominator e - h e)).
    { assert (Z : sum (fun k => q k * v k) keys + - mean * Q = 0) by (unfold mean; field; lra).
      rewrite <- (Rplus_0_r (sum _ keys)), <- Z; unfold numerator, denominator, Q, f, q.
      replace (_ - _ - W * pt e - _) with
        (sum (fun k => w k * exp (c e k + a e k) * v k) keys
         + - mean * sum (fun k => w k * exp (c e k + b e k)) keys) by ring.
      rewrite <- !sum_scale, <- !sum_plus; apply sum_eq; intros k _.
      unfold expm1; rewrite !exp_plus; ring. }
    rewrite S; field; lra. }
  rewrite E1; unfold e_convex.
  apply Rabs_plus_le; [apply Rabs_plus_le; [apply mean_near_o|]|].
  - replace (_ * V) with ((expm1 A_max + expm1 B_max) * V
      * (exp B_max * (1 + h E / (W * D E)))) by ring.
    apply Rabs_mult_le.
    + apply mean_within; intros k i; destruct (budgets k i) as (_ & Ha & Hb).
      destruct (budgets_small k i); rewrite Rmult_plus_distr_r, (Rmult_comm (expm1 B_max)).
      apply Rabs_minus_le; apply Rabs_mult_le; auto; apply Rabs_expm1_le; lra.
    + rewrite Rabs_right; [apply Q_over_denominator|].
      apply Rle_ge; left; apply Rdiv_lt_0_compat; lra.
  - replace (((g E + h E * V) / W + pt E) / D E) with ((g E + V * h E + W * pt E) / (W * D E))
      by (field; split; lra).
    apply Rabs_div_le; [assumption | assumption |].
    apply Rabs_plus_le; [apply Rabs_minus_le; [|apply Rabs_mult_le] | apply Rabs_mult_le];
      try assumption; rewrite Rabs_right; lra.
Qed.

(* (22) *)
Theorem output_bound_convex : Rabs (o_hat e - o) <= after_division E e_convex.
Proof. apply division_bound, quotient_bound_convex. Qed.

End Bound.

(* ---------- the hypotheses can be met ---------- *)

(* D > 0 follows from two numbers: the largest shared budget, and the absolute error H. *)
Lemma D_at_least E top : (forall k, In k keys -> c E k + b E k <= top) ->
  exp (- top) - h E / W <= D E.
Proof.
  intros below; unfold D; apply Rplus_le_compat_r.
  replace (exp (- top)) with (sum (fun k => exp (- top) * p k) keys)
    by (rewrite sum_scale, p_adds_to_one; ring).
  apply sum_le; intros k i; rewrite Rmult_comm; pose proof (p_positive k i).
  apply Rmult_le_compat_l; [lra | apply exp_le; specialize (below k i); lra].
Qed.

Definition no_errors : errors := Errors (fun _ => 0) (fun _ => 0) (fun _ => 0) 0 0 0 0 0.

Theorem exact_kernel : within no_errors no_errors /\ 0 < D no_errors /\ o_hat no_errors = o.
Proof.
  pose proof W_positive; repeat split; cbn; try (rewrite Rabs_R0; lra).
  - eapply Rlt_le_trans; [|apply (D_at_least _ 0); intros; cbn; lra]; cbn.
    rewrite Ropp_0, exp_0; unfold Rdiv; lra.
  - unfold o_hat, numerator, denominator; cbn.
    rewrite (sum_eq _ (fun k => w k * v k)), (sum_eq (fun k => w k * exp (0 + 0)) w)
      by (intros; rewrite Rplus_0_r, exp_0; ring).
    rewrite <- (W_times v); fold W o; rewrite exp_0; field; lra.
Qed.

End Row.

(* One key of value v > 0 and an error a > 0 of the numerator alone: (21) is reached. *)
Theorem bound_reached (x y : R) : 0 < x -> 0 < y ->
  let e := Errors (fun _ : unit => 0) (fun _ => y) (fun _ => 0) 0 0 0 0 0 in
  let row := [tt] in let one := fun _ => 1 in let value := fun _ => x in
  o_hat row one value e - o row one value = after_division row one value e (e0 row one value e).
Proof.
  intros; unfold o_hat, after_division, e0, D, numerator, denominator, o, p, W, e, one, value.
  cbn; rewrite !Rplus_0_r, !Rplus_0_l, Rminus_0_r, Ropp_0, !expm1_0, exp_0.
  replace (1 / 1 * x) with x by field; rewrite (Rabs_right x) by lra; unfold expm1; field.
Qed.

(* One key, and any error that numerator and denominator share: the answer is exact. *)
Theorem shared_error_cancels (x y : R) :
  let e := Errors (fun _ : unit => y) (fun _ => 0) (fun _ => 0) 0 0 0 0 0 in
  let row := [tt] in let one := fun _ => 1 in let value := fun _ => x in
  o_hat row one value e = o row one value.
Proof.
  unfold o_hat, numerator, denominator, o, p, W; cbn; rewrite !Rplus_0_r, exp_0.
  pose proof (exp_pos y); field; lra.
Qed.
