(* The cast of P, rule (12) of the contract: near a power of two, rounding to nearest loses little.

   In words.  RN maps p to a nearest number of its format; so it loses at most what any number z of
   the format would: |RN(p) - p| <= |z - p|.  If |ln(p / z)| <= y and expm1(y) < 1, then

     RN(p) = p e^theta,   |theta| <= - ln(1 - expm1(y)).                                      (12)

   With z = 1: a key at the reference itself has p = 1 and is cast without error.
   With z a power of two: let d_j be the distance of s_j - M to the nearest multiple of ln 2.
   Whatever key k holds the reference, s_j - s_k is within d_j + d_k of a multiple of ln 2, so

     y'_j = d_j + max_k d_k + eps_j + max_k eps_k + t_c Del_j + x_j + E

   will do for p = exp(s - m) with the errors of Telescoping.v: rows whose scores differ by
   multiples of ln 2 are cast almost without error. *)

Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core.
From ringproof Require Import Sums.
Open Scope R_scope.

Section Cast.

(* Any map to nearest, of any format. *)
Variable format : R -> Prop.
Variable RN : R -> R.
Hypothesis to_nearest : forall p z, format z -> Rabs (RN p - p) <= Rabs (z - p).

Definition cast_budget (y : R) : R := - ln (1 - expm1 y).

Theorem cast_rule p z y : 0 < p -> 0 < z -> format z -> Rabs (ln (p / z)) <= y -> expm1 y < 1 ->
  exists theta, RN p = p * exp theta /\ Rabs theta <= cast_budget y.
Proof.
  intros Pp Pz F near small.
  assert (close : Rabs (RN p / p - 1) <= expm1 y).
  { replace (RN p / p - 1) with ((RN p - p) / p) by (field; lra).
    replace (expm1 y) with (p * expm1 y / p) by (field; lra).
    apply Rabs_div_le; [lra | lra |]; eapply Rle_trans; [apply to_nearest, F|].
    replace (z - p) with (p * expm1 (- ln (p / z))).
    - apply Rabs_mult_le; [rewrite Rabs_right; lra | apply Rabs_expm1_le; now rewrite Rabs_Ropp].
    - unfold expm1; rewrite exp_Ropp, exp_ln by (apply Rdiv_lt_0_compat; lra); field; lra. }
  apply Rabs_bounds in close; exists (ln (RN p / p)); split.
  - rewrite exp_ln by lra; field; lra.
  - pose proof (ln_le (1 - expm1 y) (RN p / p) ltac:(lra) ltac:(lra)).
    pose proof (ln_le (RN p / p) (/ (1 - expm1 y))) as above; rewrite ln_Rinv in above by lra.
    unfold cast_budget; apply Rabs_le; split; [lra|]; apply above; [lra|].
    apply (Rmult_le_reg_r (1 - expm1 y)); [lra|]; rewrite Rinv_l by lra; nra.
Qed.

(* The key that holds the reference. *)
Corollary argmax_exact : format 1 -> RN (exp 0) = 1.
Proof.
  intros F; pose proof (to_nearest 1 1 F) as E; rewrite exp_0.
  rewrite Rminus_eq_0, Rabs_R0 in E; pose proof (Rabs_pos (RN 1 - 1)).
  apply Rabs_bounds in E; lra.
Qed.

(* ---------- powers of two ---------- *)

(* x is within d of a multiple of ln 2. *)
Definition near_multiple (x d : R) : Prop := exists n : Z, Rabs (x - IZR n * ln 2) <= d.

Lemma near_multiple_difference x x' d d' :
  near_multiple x d -> near_multiple x' d' -> near_multiple (x - x') (d + d').
Proof.
  intros (n & near) (n' & near'); exists (n - n')%Z; rewrite minus_IZR.
  replace (x - x' - (IZR n - IZR n') * ln 2) with ((x - IZR n * ln 2) - (x' - IZR n' * ln 2))
      by ring.
  apply Rabs_minus_le; assumption.
Qed.

Lemma near_multiple_plus x e d b : near_multiple x d -> Rabs e <= b -> near_multiple (x + e) (d +
    b).
Proof.
  intros (n & near) small; exists n.
  replace (x + e - IZR n * ln 2) with ((x - IZR n * ln 2) + e) by ring.
  apply Rabs_plus_le; assumption.
Qed.

(* p = exp(x) near a power of two that the format holds. *)
Theorem cast_near_power x y n : format (bpow radix2 n) -> Rabs (x - IZR n * ln 2) <= y ->
  expm1 y < 1 -> exists theta, RN (exp x) = exp x * exp theta /\ Rabs theta <= cast_budget y.
Proof.
  intros F near small; apply (cast_rule (exp x) (bpow radix2 n) y); auto using exp_pos, bpow_gt_0.
  rewrite bpow_exp; unfold Rdiv; rewrite <- exp_Ropp, <- exp_plus, ln_exp; exact near.
Qed.

(* The budget y'_j.  s and s' are the computed scores of the key and of the one that holds the
   reference, c collects the errors of the exponential. *)
Theorem dyadic_budget M score_j score_k e_j e_k eps_j eps_k d_j d_k delta t_c Del c x_E :
  near_multiple (score_j - M) d_j -> near_multiple (score_k - M) d_k ->
  Rabs e_j <= eps_j -> Rabs e_k <= eps_k -> Rabs delta <= t_c ->
  Rabs (score_j + e_j - (score_k + e_k)) <= Del -> Rabs c <= x_E ->
  near_multiple ((1 + delta) * (score_j + e_j) - (1 + delta) * (score_k + e_k) + c)
                (d_j + d_k + eps_j + eps_k + t_c * Del + x_E).
Proof.
  intros Hj Hk ej ek Hd way Hc.
  replace ((1 + delta) * (score_j + e_j) - (1 + delta) * (score_k + e_k) + c) with
    ((score_j - M) - (score_k - M) + (e_j - e_k) + delta * (score_j + e_j - (score_k + e_k)) + c)
        by ring.
  replace (d_j + d_k + eps_j + eps_k + t_c * Del + x_E) with
    (d_j + d_k + (eps_j + eps_k) + t_c * Del + x_E) by ring.
  apply near_multiple_plus; [apply near_multiple_plus; [apply near_multiple_plus|]|]; trivial.
  - apply near_multiple_difference; assumption.
  - apply Rabs_minus_le; assumption.
  - apply Rabs_mult_le; assumption.
Qed.

End Cast.

(* ---------- the formats ---------- *)

(* Rounding to nearest in a format whose last subnormal bit is 2^emin: a weight near a multiple of
   ln 2 gets the factor of (12), or lies so low that half that bit covers what it loses (eta_P). *)
Theorem cast_to_format emin precision choice x y : Prec_gt_0 precision ->
  near_multiple x y -> expm1 y < 1 ->
  let p := round radix2 (FLT_exp emin precision) (Znearest choice) (exp x) in
  (exists theta, p = exp x * exp theta /\ Rabs theta <= cast_budget y)
  \/ Rabs (p - exp x) <= / 2 * bpow radix2 emin.
Proof.
  intros positive (n & near) small p; destruct (Z_le_gt_dec emin n) as [in_format | below].
  - left; apply (cast_near_power (generic_format radix2 (FLT_exp emin precision)) _) with n;
      trivial.
    + intros q z F; apply round_N_pt; auto with typeclass_instances.
    + apply generic_format_bpow; unfold FLT_exp, Prec_gt_0 in *; lia.
  - right; eapply Rle_trans; [apply error_le_half_ulp; auto with typeclass_instances|].
    apply Rmult_le_compat_l; [lra|].
    rewrite (ulp_FLT_small radix2 emin precision); [lra|].
    rewrite Rabs_right by (left; apply exp_pos); apply Rabs_bounds in near.
    apply Rlt_le_trans with (bpow radix2 (1 + n)); [|apply bpow_le; unfold Prec_gt_0 in *; lia].
    rewrite bpow_plus, (bpow_exp radix2 n); change (bpow radix2 1) with 2.
    apply Rle_lt_trans with (exp (y + IZR n * ln 2)); [apply exp_le; lra|].
    rewrite exp_plus; apply Rmult_lt_compat_r; [apply exp_pos | unfold expm1 in small; lra].
Qed.

(* One key beside one that is ln 2 higher: near a multiple of ln 2 at distance 0, loses nothing. *)
Theorem dyadic_example : near_multiple (- ln 2) 0 /\ cast_budget 0 = 0.
Proof.
  split; [exists (-1)%Z; replace (- ln 2 - -1 * ln 2) with 0 by ring; rewrite Rabs_R0; lra|].
  unfold cast_budget; rewrite expm1_0, Rminus_0_r, ln_1; ring.
Qed.
