(* The shared error C_j of a key, (7) to (10) of the contract: rescaling telescopes.

   In words.  A row is read in blocks.  A key with computed score s enters at the reference m of its
   block, by exp of the computed difference s - m; every later block moves the reference to m' >= m
   and multiplies by exp of the computed m - m'.  A computed difference is the exact one times e^nu,
   |nu| <= N (n_a roundings); a computed exponential is the exact one of its argument times e^eps,
   |eps| <= E, and exactly 1 at 0.  References may lag: s - m <= tau.

   Then the key ends with the weight exp(s - m_T + c), where

     |c| <= expm1(N) (m_T - s + 2 tau) + (1 + n_al) E,     n_al = number of times m was raised:

   the whole way from s to m_T counts once, not once for each block.  With computed scores
   s = (1 + delta) (s_j + e_j), |e_j| <= eps_j, |delta| <= t_c the same for all keys, this is
   K w_j e^{c_j} with w_j = exp(s_j - M), a factor K common to all keys, and

     |c_j| <= C_j = eps_j + expm1(N) Del_j + (1 + n_al) E + t_c (|s_j - M| + eps_j)            (10)
     Del_j = (1 + t_c) (M+ - s_j + eps_j) + 2 tau,     M+ = max_j (s_j + eps_j).               (7)

   A fused kernel rounds m c first and subtracts it in one operation.  That rounding is shared by
   its block only, so it adds

     mu_j = e^{2 U} U mu'_j,   mu'_j = (1 + t_c) max(|M+|, |s_j| + eps_j + tau),   U = hat(u)   (9)
     *)

Require Import Reals Lra Lia List.
From ringproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Section Row.

Variables (N E tau : R).
Hypothesis N_nonneg : 0 <= N.

(* The exponential of a difference, as computed. *)
Definition exp_computed (difference nu eps : R) : R := exp (difference * exp nu) * exp eps.

(* A later block: its reference, and the errors of the factor exp(m - m'). *)
Record block := Block { reference : R; nu : R; eps : R }.

Definition step_legal (m : R) (b : block) : Prop :=
  m <= reference b /\ Rabs (nu b) <= N /\ Rabs (eps b) <= E /\ (reference b = m -> eps b = 0).

Fixpoint legal (m : R) (later : list block) : Prop :=
  match later with [] => True | b :: rest => step_legal m b /\ legal (reference b) rest end.

(* The last reference, the product of the factors, and how often the reference was raised. *)
Fixpoint last (m : R) (later : list block) : R :=
  match later with [] => m | b :: rest => last (reference b) rest end.
Fixpoint factors (m : R) (later : list block) : R :=
  match later with
  | [] => 1
  | b :: rest => exp_computed (m - reference b) (nu b) (eps b) * factors (reference b) rest
  end.
Fixpoint raised (m : R) (later : list block) : nat :=
  match later with
  | [] => 0
  | b :: rest => (if Req_EM_T (reference b) m then 0 else 1) + raised (reference b) rest
  end.

Lemma last_above m later : legal m later -> m <= last m later.
Proof.
  revert m; induction later as [|b rest IH]; intros m; simpl; [lra|].
  intros ((up & _) & rest_legal); apply IH in rest_legal; lra.
Qed.

Lemma raised_at_most m later : (raised m later <= length later)%nat.
Proof.
  revert m; induction later as [|b rest IH]; intros m; simpl; [lia|].
  specialize (IH (reference b)); destruct Req_EM_T; lia.
Qed.

(* The factors of all later blocks together. *)
Theorem rescaling_telescopes m later : legal m later -> exists c,
  factors m later = exp (m - last m later + c)
  /\ Rabs c <= expm1 N * (last m later - m) + INR (raised m later) * E.
Proof.
  revert m; induction later as [|b rest IH]; intros m; cbn [legal factors last raised].
  - intros _; exists 0; rewrite Rminus_eq_0, Rplus_0_l, exp_0, Rabs_R0; simpl; split; lra.
  - intros ((up & near & near' & exact) & rest_legal); destruct (IH _ rest_legal) as (c & Ec & le).
    set (r := reference b) in *; set (final := last r rest) in *.
    exists ((m - r) * expm1 (nu b) + eps b + c); split.
    + rewrite Ec; unfold exp_computed; rewrite <- !exp_plus; f_equal; unfold expm1; ring.
    + rewrite plus_INR; apply Rle_trans with
        ((r - m) * expm1 N + INR (if Req_EM_T r m then 0 else 1) * E
         + (expm1 N * (final - r) + INR (raised r rest) * E)); [|apply Req_le; ring].
      apply Rabs_plus_le; [apply Rabs_plus_le | exact le].
      * apply Rabs_mult_le; [rewrite Rabs_left1; lra | apply Rabs_expm1_le, near].
      * destruct (Req_EM_T r m) as [same | _]; simpl; [|lra].
        rewrite exact, Rabs_R0 by exact same; lra.
Qed.

(* ---------- one key ---------- *)

Variables (s m nu0 eps0 : R) (later : list block).
Hypothesis nu0_small : Rabs nu0 <= N.
Hypothesis eps0_small : Rabs eps0 <= E.
Hypothesis lag : s - m <= tau.
Hypothesis tau_nonneg : 0 <= tau.
Hypothesis later_legal : legal m later.

Definition key_weight : R := exp_computed (s - m) nu0 eps0 * factors m later.
Definition key_budget : R :=
  expm1 N * (last m later - s + 2 * tau) + (1 + INR (raised m later)) * E.

(* From s to m and on to the last reference is at most 2 tau longer than from s to the last. *)
Lemma way : Rabs (s - m) + (last m later - m) <= last m later - s + 2 * tau.
Proof. unfold Rabs; destruct Rcase_abs; lra. Qed.

Theorem key_telescopes : exists c, key_weight = exp (s - last m later + c) /\ Rabs c <= key_budget.
Proof.
  destruct (rescaling_telescopes m later later_legal) as (c & Ec & le).
  exists ((s - m) * expm1 nu0 + eps0 + c); unfold key_weight, key_budget; split.
  - rewrite Ec; unfold exp_computed; rewrite <- !exp_plus; f_equal; unfold expm1; ring.
  - apply Rle_trans with (expm1 N * (Rabs (s - m) + (last m later - m))
      + (1 + INR (raised m later)) * E);
      [|apply Rplus_le_compat_r, Rmult_le_compat_l; auto using expm1_nonneg, way].
    replace (expm1 N * (Rabs (s - m) + (last m later - m)) + (1 + INR (raised m later)) * E) with
      (Rabs (s - m) * expm1 N + E + (expm1 N * (last m later - m) + INR (raised m later) * E))
          by ring.
    apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_mult_le|] | exact le]; try assumption;
      [apply Rle_refl | apply Rabs_expm1_le, nu0_small].
Qed.

(* ---------- the filling of C_j ---------- *)

Variables (delta t_c score_j e_j eps_j M M_plus : R).
Hypothesis delta_small : Rabs delta <= t_c.
Hypothesis e_j_small : Rabs e_j <= eps_j.
Hypothesis computed_score : s = (1 + delta) * (score_j + e_j).
Hypothesis below_M_plus : score_j + eps_j <= M_plus.
(* Every computed reference is a computed score, lowered perhaps. *)
Hypothesis last_below : last m later <= (1 + delta) * M_plus.

Definition Del : R := (1 + t_c) * (M_plus - score_j + eps_j) + 2 * tau.         (* (7) *)
Definition C_j (n_al : nat) : R :=                                              (* (10) *)
  eps_j + expm1 N * Del + (1 + INR n_al) * E + t_c * (Rabs (score_j - M) + eps_j).

(* The same for all keys of the row. *)
Definition common : R := exp ((1 + delta) * M - last m later).

Lemma way_in_scores : last m later - s + 2 * tau <= Del.
Proof.
  unfold Del; apply Rabs_bounds in delta_small, e_j_small; rewrite computed_score; nra.
Qed.

Theorem C_filling n_al : (raised m later <= n_al)%nat -> exists c_j,
  key_weight = common * exp (score_j - M) * exp c_j /\ Rabs c_j <= C_j n_al.
Proof.
  intros few; destruct key_telescopes as (c & Ec & le).
  exists (e_j + c + delta * (score_j - M + e_j)); split.
  - rewrite Ec; unfold common; rewrite <- !exp_plus; f_equal; rewrite computed_score; ring.
  - assert (E_nonneg : 0 <= E) by (eapply Rle_trans; [apply Rabs_pos | exact eps0_small]).
    unfold C_j; rewrite !(Rplus_assoc eps_j); rewrite <- (Rplus_assoc eps_j).
    replace (eps_j + (expm1 N * Del + ((1 + INR n_al) * E + t_c * (Rabs (score_j - M) + eps_j))))
      with (eps_j + (expm1 N * Del + (1 + INR n_al) * E) + t_c * (Rabs (score_j - M) + eps_j))
          by ring.
    apply Rabs_plus_le; [apply Rabs_plus_le; [exact e_j_small|]|].
    + eapply Rle_trans; [exact le|]; unfold key_budget; apply Rplus_le_compat.
      * apply Rmult_le_compat_l; auto using expm1_nonneg, way_in_scores.
      * apply Rmult_le_compat_r; [exact E_nonneg|]; apply le_INR in few; lra.
    + apply Rabs_mult_le; [exact delta_small | apply Rabs_plus_le; lra].
Qed.

(* ---------- fused multiply and add ---------- *)

(* The difference s - m is computed as (s - m e^rho) e^nu0. *)
Variables (U rho : R).
Hypothesis t_c_small : t_c < 1.
Hypothesis U_nonneg : 0 <= U.
Hypothesis rho_small : Rabs rho <= U.
Hypothesis nu0_one_rounding : Rabs nu0 <= U.

Definition fused_weight : R := exp ((s - m * exp rho) * exp nu0) * exp eps0 * factors m later.
Definition mu' : R := (1 + t_c) * Rmax (Rabs M_plus) (Rabs score_j + eps_j + tau).
Definition mu : R := exp (2 * U) * U * mu'.

Lemma reference_small : Rabs m <= mu'.
Proof.
  pose proof (last_above m later later_legal); unfold mu'.
  pose proof (Rmax_l (Rabs M_plus) (Rabs score_j + eps_j + tau)).
  pose proof (Rmax_r (Rabs M_plus) (Rabs score_j + eps_j + tau)).
  set (top := Rmax _ _) in *; apply Rabs_bounds in delta_small.
  assert (near : Rabs (score_j + e_j) <= Rabs score_j + eps_j)
    by (apply Rabs_plus_le; [apply Rle_refl | assumption]).
  pose proof (Rabs_pos M_plus); pose proof (Rle_abs M_plus); apply Rabs_bounds in near.
  pose proof (Rabs_pos score_j); apply Rabs_le; rewrite computed_score in lag; split; nra.
Qed.

Lemma expm1_at_most x : expm1 x <= x * exp x.
Proof.
  pose proof (exp_at_least (- x)); pose proof (exp_inverse x); pose proof (exp_pos x).
  unfold expm1; nra.
Qed.

Theorem fused_filling n_al : (raised m later <= n_al)%nat -> exists c_j,
  fused_weight = common * exp (score_j - M) * exp c_j /\ Rabs c_j <= C_j n_al + mu.
Proof.
  intros few; destruct (C_filling n_al few) as (c & Ec & le).
  exists (c + - (m * (expm1 rho * exp nu0))); split.
  - rewrite (exp_plus c), <- Rmult_assoc, <- Ec; unfold fused_weight, key_weight, exp_computed.
    replace ((s - m * exp rho) * exp nu0) with ((s - m) * exp nu0 + - (m * (expm1 rho * exp nu0)))
      by (unfold expm1; ring).
    rewrite exp_plus; ring.
  - apply Rabs_plus_le; [exact le|]; rewrite Rabs_Ropp.
    replace mu with (mu' * (U * exp U * exp U))
      by (unfold mu; replace (2 * U) with (U + U) by ring; rewrite exp_plus; ring).
    apply Rabs_mult_le; [apply reference_small | apply Rabs_mult_le; [|apply Rabs_exp_le;
        assumption]].
    eapply Rle_trans; [apply Rabs_expm1_le, rho_small | apply expm1_at_most].
Qed.

End Row.

(* ---------- not vacuous ---------- *)

(* A row whose second block raises the reference, with roundings of both kinds. *)
Theorem legal_example : legal (/ 8) (/ 16) 2 [Block 3 (/ 8) (- / 16); Block 3 (- / 8) 0].
Proof. repeat split; simpl; try (apply Rabs_le); lra. Qed.

(* Without roundings the weight is exact. *)
Theorem exact_weight s m later tau : 0 <= tau -> s - m <= tau -> legal 0 0 m later ->
  key_weight s m 0 0 later = exp (s - last m later).
Proof.
  intros P lag exact.
  destruct (key_telescopes 0 0 tau (Rle_refl 0) s m 0 0 later) as (c & Ec & le); trivial;
    try (rewrite Rabs_R0; lra).
  unfold key_budget in le; rewrite expm1_0, Rmult_0_l, Rmult_0_r, Rplus_0_r in le.
  pose proof (Rabs_pos c); rewrite Ec; f_equal; apply Rabs_bounds in le; lra.
Qed.

(* A key above its lagging reference, with errors of every kind: all hypotheses of C_filling hold.
   *)
Theorem filling_example : let later := [Block (9 / 8) (- / 8) (/ 16)] in exists c_j,
  key_weight (9 / 16) (/ 2) (/ 8) (/ 16) later
  = common (/ 2) later (/ 8) 1 * exp (/ 4 - 1) * exp c_j
  /\ Rabs c_j <= C_j (/ 8) (/ 16) (/ 4) (/ 8) (/ 4) (/ 4) 1 (5 / 4) 1.
Proof.
  intros later; apply C_filling with (e_j := / 4); try (rewrite ?Rabs_right; lra).
  - repeat split; cbn; try (apply Rabs_le); lra.
  - cbn; lra.
  - cbn; destruct Req_EM_T; lia.
Qed.
