(* Normalised partial answers: how they combine, and how they do not.

   In words.  lse = ln sum_j exp(s_j) is the log-sum-exp of a set of keys.
   1. m + ln l of a state is the lse of its keys, whatever the reference m.
   2. The answer over a union of groups is the sum of the groups' answers with the weights
      exp(lse_r - lse), which are positive and add up to 1.
   3. For two groups this is the sigmoid form: out - sigmoid(lse' - lse) (out - out').
   4. The plain average of two normalised blocks is off by (1/2 - share of the first) times the
      difference of the two answers: right if and only if both weigh the same or agree.
   5. With the running maximum as reference, 1 <= l <= number of keys: no weight overflows. *)

Require Import Reals Lra List.
From ringproof Require Import Sums OnlineSoftmax.
Import ListNotations.
Open Scope R_scope.

Definition mass (keys : list key) : R := sum (fun k => exp (score k)) keys.
Definition lse (keys : list key) : R := ln (mass keys).

Lemma mass_positive keys : keys <> [] -> 0 < mass keys.
Proof. intros; apply sum_positive; [assumption | intros; apply exp_pos]. Qed.

Lemma exp_lse keys : keys <> [] -> exp (lse keys) = mass keys.
Proof. intros; apply exp_ln, mass_positive; assumption. Qed.

Lemma mass_concat groups : mass (concat groups) = sum mass groups.
Proof.
  induction groups as [|g rest IH]; simpl; [reflexivity|].
  unfold mass in *; rewrite sum_app, IH; reflexivity.
Qed.

Theorem lse_of_state (r : R) keys : keys <> [] -> r + ln (l (state_at (Some r) keys)) = lse keys.
Proof.
  intros some; rewrite <- (ln_exp r) at 1; rewrite <- ln_mult by auto using exp_pos, l_positive.
  unfold lse, mass; cbn [l state_at]; rewrite <- sum_scale; f_equal; apply sum_eq; intros k _.
  unfold weight; simpl; rewrite <- exp_plus; f_equal; ring.
Qed.

(* ---------- partials combine with their lse ---------- *)

Definition lse_weight (groups : list (list key)) (g : list key) : R :=
  exp (lse g - lse (concat groups)).

Lemma concat_some (groups : list (list key)) : groups <> [] -> ~ In [] groups -> concat groups <>
    [].
Proof.
  destruct groups as [|[|k g] rest]; simpl; intros some no_empty; try easy; tauto.
Qed.

Lemma lse_weight_is_share groups g : In g groups -> ~ In [] groups ->
  lse_weight groups g = mass g / mass (concat groups).
Proof.
  intros i no_empty; unfold lse_weight, Rminus, Rdiv; rewrite exp_plus, exp_Ropp.
  rewrite !exp_lse; [reflexivity | apply concat_some | intros ->]; [intros -> | |]; easy.
Qed.

Theorem partials_combine groups : groups <> [] -> ~ In [] groups ->
  softmax_mean (concat groups) = sum (fun g => lse_weight groups g * softmax_mean g) groups.
Proof.
  intros some no_empty; assert (PT := mass_positive _ (concat_some groups some no_empty)).
  transitivity (/ mass (concat groups)
                * sum (fun g => sum (fun k => exp (score k) * value k) g) groups).
  - unfold softmax_mean; fold (mass (concat groups)); unfold Rdiv; rewrite Rmult_comm; f_equal.
    clear; induction groups as [|g rest IH]; simpl; [|rewrite sum_app, IH]; reflexivity.
  - rewrite <- sum_scale; apply sum_eq; intros g i; rewrite lse_weight_is_share by assumption.
    assert (0 < mass g) by (apply mass_positive; intros ->; easy).
    unfold softmax_mean; fold (mass g); field; lra.
Qed.

Theorem weights_add_to_one groups : groups <> [] -> ~ In [] groups ->
  sum (lse_weight groups) groups = 1.
Proof.
  intros some no_empty; assert (PT := mass_positive _ (concat_some groups some no_empty)).
  rewrite (sum_eq _ (fun g => / mass (concat groups) * mass g)).
  - rewrite sum_scale, <- mass_concat; field; lra.
  - intros; rewrite lse_weight_is_share by assumption; unfold Rdiv; ring.
Qed.

Definition sigmoid (x : R) : R := / (1 + exp (- x)).

Theorem sigmoid_merge a b : a <> [] -> b <> [] -> softmax_mean (a ++ b)
  = softmax_mean a - sigmoid (lse b - lse a) * (softmax_mean a - softmax_mean b).
Proof.
  intros na nb; pose proof (mass_positive a na); pose proof (mass_positive b nb).
  unfold sigmoid; replace (- (lse b - lse a)) with (lse a + - lse b) by ring.
  rewrite exp_plus, exp_Ropp, !exp_lse by assumption; unfold softmax_mean; rewrite !sum_app.
  fold (mass a) (mass b); field; lra.
Qed.

Theorem sigmoid_merge_lse a b : a <> [] -> b <> [] ->
  lse (a ++ b) = lse a - ln (sigmoid (lse a - lse b)).
Proof.
  intros na nb; pose proof (mass_positive a na); pose proof (mass_positive b nb).
  unfold sigmoid; replace (- (lse a - lse b)) with (lse b + - lse a) by ring.
  rewrite exp_plus, exp_Ropp, !exp_lse by assumption.
  assert (0 < mass b * / mass a) by (apply Rmult_lt_0_compat; [|apply Rinv_0_lt_compat];
      assumption).
  rewrite ln_Rinv by lra; unfold Rminus; rewrite Ropp_involutive; unfold lse.
  rewrite <- ln_mult by lra; f_equal; unfold mass; rewrite sum_app; fold (mass a) (mass b); field;
      lra.
Qed.

(* ---------- the plain average ---------- *)

Definition average (a b : list key) : R := (softmax_mean a + softmax_mean b) / 2.
Definition share (a b : list key) : R := mass a / (mass a + mass b).

Theorem average_error a b : a <> [] -> b <> [] ->
  average a b - softmax_mean (a ++ b) = (1 / 2 - share a b) * (softmax_mean a - softmax_mean b).
Proof.
  intros na nb; pose proof (mass_positive a na); pose proof (mass_positive b nb).
  unfold average, share, softmax_mean; rewrite !sum_app; fold (mass a) (mass b); field; lra.
Qed.

Theorem average_right_iff a b : a <> [] -> b <> [] ->
  (average a b = softmax_mean (a ++ b) <-> mass a = mass b \/ softmax_mean a = softmax_mean b).
Proof.
  intros na nb; pose proof (average_error a b na nb) as E.
  pose proof (mass_positive a na); pose proof (mass_positive b nb); unfold share in E.
  assert (F : 1 / 2 - mass a / (mass a + mass b)
              = (mass b - mass a) * / (2 * (mass a + mass b))) by (field; lra).
  assert (0 < / (2 * (mass a + mass b))) by (apply Rinv_0_lt_compat; lra).
  rewrite F in E; split; [intros Z; rewrite Z in E | intros [Z | Z]; rewrite Z in E; lra].
  destruct (Req_dec (softmax_mean a) (softmax_mean b)) as [|ne]; [tauto | left].
  assert (Z' : (mass b - mass a) * / (2 * (mass a + mass b))
               * (softmax_mean a - softmax_mean b) = 0) by lra.
  apply Rmult_integral in Z' as [Z' | ?]; [apply Rmult_integral in Z'; lra | lra].
Qed.

(* ---------- what the maximum is for: range ---------- *)

Lemma max_score_is_max m0 keys : max_score keys = Some m0 ->
  (forall k, In k keys -> score k <= m0) /\ exists k, In k keys /\ score k = m0.
Proof.
  revert m0; induction keys as [|k rest IH]; intros m0; simpl; [discriminate|].
  destruct (max_score rest) as [b|] eqn:E; intros [= <-].
  - destruct (IH b eq_refl) as (below & x & ix & Ex); split.
    + intros y [-> | i]; [apply Rmax_l | eapply Rle_trans; [now apply below | apply Rmax_r]].
    + unfold Rmax; destruct Rle_dec; [exists x | exists k]; auto.
  - apply max_score_covers in E as ->; split; [intros y [-> | []]; lra | exists k; auto].
Qed.

Theorem running_maximum_range keys : keys <> [] -> 1 <= l (dense keys) <= INR (length keys).
Proof.
  intros some; unfold dense; destruct (max_score keys) as [m0|] eqn:E;
    [|now apply max_score_covers in E].
  apply max_score_is_max in E as (below & x & ix & Ex); cbn [l state_at]; unfold weight, factor.
  split.
  - apply in_split in ix as (a & b & ->); rewrite sum_app; simpl sum.
    rewrite Ex, Rminus_eq_0, exp_0.
    assert (P : forall q, 0 <= sum (fun k => exp (score k - m0)) q)
      by (intros q; apply sum_nonneg; intros; left; apply exp_pos).
    pose proof (P a); pose proof (P b); lra.
  - rewrite <- sum_ones; apply sum_le; intros k i; rewrite <- exp_0.
    apply exp_le; specialize (below k i); lra.
Qed.
