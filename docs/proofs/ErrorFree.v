(* Error-free sums and products of binary64 (oracle/truth/double_double-inl.hpp).

   In words.  RN is rounding to nearest, ties to even, with gradual underflow.
   1. TwoSum: the program's low word is exactly the error of RN(a + b).
   2. FastTwoSum: so is its shorter form, where |a| >= |b|.
   3. A product is added to a number h of at least a large power of two C, by one fused operation:
      s = RN(a b + h), C <= h, s <= 2 C.  Then s - h is exact, and what the sum lost,
      a b - (s - h), is at most 2^-53 C and at most |a b|; it is a binary64 number if a b is one.
   4. RN(a b - RN(a b)) is the error of the product, if neither word underflows.
   Overflow is not modelled: the caller keeps its numbers below 2^960. *)

Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core Plus_error Mult_error Relative Pff2Flocq.
From ringproof Require Import Sums.
Open Scope R_scope.

#[global] Instance precision_positive : Prec_gt_0 53 := eq_refl.

Notation binary64 := (generic_format radix2 (FLT_exp (-1074) 53)).
Definition RN : R -> R := round radix2 (FLT_exp (-1074) 53) ZnearestE.
Notation power := (bpow radix2).
Definition u : R := power (-53).                      (* the unit roundoff *)

Lemma u_value : u = / 2 ^ 53.
Proof. unfold u; simpl; lra. Qed.

Lemma RN_binary64 x : binary64 (RN x).
Proof. apply generic_format_round; auto with typeclass_instances. Qed.

Lemma RN_exact x : binary64 x -> RN x = x.
Proof. intros; apply round_generic; auto with typeclass_instances. Qed.

Lemma RN_le x y : x <= y -> RN x <= RN y.
Proof. intros; apply round_le; auto with typeclass_instances. Qed.

Lemma RN_opp x : RN (- x) = - RN x.
Proof. apply round_NE_opp. Qed.

Lemma RN_near x y : binary64 y -> Rabs (RN x - x) <= Rabs (y - x).
Proof. intros F; apply round_N_pt; auto with typeclass_instances. Qed.

(* A bound that is a binary64 number survives rounding. *)
Lemma RN_abs_le x b : binary64 b -> Rabs x <= b -> Rabs (RN x) <= b.
Proof. intros; apply abs_round_le_generic; auto with typeclass_instances. Qed.

Lemma power_binary64 e : (-1074 <= e)%Z -> binary64 (power e).
Proof. intros; apply generic_format_bpow; unfold FLT_exp; lia. Qed.

Lemma zero_binary64 : binary64 0.
Proof. apply generic_format_0. Qed.

Lemma opp_binary64 x : binary64 x -> binary64 (- x).
Proof. apply generic_format_opp. Qed.

(* What a rounding loses, for numbers up to a power of two; e = -1021 also covers subnormals. *)
Lemma RN_error x e : (-1021 <= e)%Z -> Rabs x <= power e -> Rabs (RN x - x) <= power (e - 54).
Proof.
  intros He [less | E].
  - apply Rle_trans with (1 := error_le_half_ulp radix2 (FLT_exp (-1074) 53) _ x).
    replace (power (e - 54)) with (/ 2 * power (e - 53)).
    2: { replace (e - 53)%Z with (1 + (e - 54))%Z by ring; rewrite bpow_plus; simpl (power 1);
        lra. }
    apply Rmult_le_compat_l; [lra|].
    destruct (Req_dec x 0) as [-> | ne]; [rewrite ulp_FLT_0 by easy; apply bpow_le; lia|].
    rewrite ulp_neq_0 by assumption; apply bpow_le; unfold cexp, FLT_exp.
    pose proof (mag_le_bpow radix2 x e ne less); lia.
  - rewrite RN_exact, Rminus_eq_0, Rabs_R0; [apply bpow_ge_0|].
    apply generic_format_abs_inv; rewrite E; apply power_binary64; lia.
Qed.

Lemma u_is_u_ro : u_ro radix2 53 = u.
Proof. unfold u_ro, u; change (-53)%Z with (-1 + (-53 + 1))%Z; rewrite bpow_plus; simpl; lra. Qed.

(* A sum of two binary64 numbers loses at most u relative to itself: it cannot underflow. *)
Lemma RN_sum_error x y : binary64 x -> binary64 y -> Rabs (RN (x + y) - (x + y)) <= u * Rabs (x +
    y).
Proof.
  intros Fx Fy.
  destruct (FLT_plus_error_N_ex radix2 (-1074) 53 (fun n => negb (Z.even n)) x y Fx Fy)
    as (d & small & E); unfold RN; rewrite E.
  replace ((x + y) * (1 + d) - (x + y)) with (d * (x + y)) by ring; rewrite Rabs_mult.
  apply Rmult_le_compat_r; [apply Rabs_pos|]; eapply Rle_trans; [exact small|].
  rewrite u_is_u_ro.
  assert (0 < u) by apply bpow_gt_0; apply (Rmult_le_reg_r (1 + u)); [lra|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; nra.
Qed.

(* Any number: relative error u, or half of the last subnormal bit. *)
Lemma RN_relative x : Rabs (RN x - x) <= u * Rabs x + power (-1075).
Proof.
  destruct (error_N_FLT radix2 (-1074) 53 eq_refl (fun n => negb (Z.even n)) x)
    as (d & e & small & small' & _ & E); fold RN in E; change (round _ _ _ x) with (RN x) in E.
  rewrite E; replace (x * (1 + d) + e - x) with (d * x + e) by ring.
  apply Rabs_plus_le; [apply Rabs_mult_le; [|apply Rle_refl]|]; eapply Rle_trans; eauto.
  - apply Req_le; unfold u; change (-53)%Z with (-1 + (-53 + 1))%Z; rewrite bpow_plus; simpl; lra.
  - apply Req_le; change (-1075)%Z with (-1 + -1074)%Z; rewrite bpow_plus; simpl (power (-1)); lra.
Qed.

(* ---------- TwoSum, FastTwoSum, TwoProduct ---------- *)

Lemma even_choice x : negb (Z.even x) = negb (negb (Z.even (- (x + 1)))).
Proof. rewrite Z.even_opp, Z.even_add; destruct (Z.even x); reflexivity. Qed.

Definition two_sum_low (a b : R) : R :=
  let sum := RN (a + b) in let b_part := RN (sum - a) in let a_part := RN (sum - b_part) in
  RN (RN (a - a_part) + RN (b - b_part)).

Theorem two_sum_exact a b : binary64 a -> binary64 b -> RN (a + b) + two_sum_low a b = a + b.
Proof. apply TwoSum_correct; lia || apply even_choice. Qed.

(* What exp asks of its argument, any TwoSum gives. *)
Theorem two_sum_normalised a b : binary64 a -> binary64 b ->
  Rabs (two_sum_low a b) <= u * Rabs (RN (a + b)).
Proof.
  intros Fa Fb; pose proof (two_sum_exact a b Fa Fb) as E.
  destruct (FLT_plus_error_N_round_ex radix2 (-1074) 53 (fun n => negb (Z.even n)) a b Fa Fb)
    as (d & small & E'); fold RN in E'; rewrite u_is_u_ro in small.
  replace (two_sum_low a b) with (d * RN (a + b)) by (unfold RN in *; lra).
  rewrite Rabs_mult; apply Rmult_le_compat_r; [apply Rabs_pos | exact small].
Qed.

Definition fast_two_sum_low (a b : R) : R := RN (b - RN (RN (a + b) - a)).

Theorem fast_two_sum_exact a b : binary64 a -> binary64 b -> Rabs b <= Rabs a ->
  RN (a + b) + fast_two_sum_low a b = a + b.
Proof.
  intros Fa Fb order; unfold fast_two_sum_low.
  replace (b - RN (RN (a + b) - a)) with (b + RN (a - RN (a + b)))
    by (rewrite <- Ropp_minus_distr, RN_opp; ring).
  apply Fast2Sum_correct; trivial; lia || apply even_choice.
Qed.

Theorem two_product_exact a b : binary64 a -> binary64 b ->
  (a * b <> 0 -> power (-969) <= Rabs (a * b)) -> RN (a * b) + RN (a * b - RN (a * b)) = a * b.
Proof.
  intros Fa Fb large; rewrite (RN_exact (a * b - RN (a * b))); [ring|].
  rewrite <- Ropp_minus_distr; apply opp_binary64.
  apply mult_error_FLT; auto with typeclass_instances; easy.
Qed.

(* ---------- adding to a large constant ---------- *)

(* A binary64 number of at least 2^c is a multiple of 2^(c - 52). *)
Lemma on_grid x c : binary64 x -> power c <= Rabs x -> exists n, x = IZR n * power (c - 52).
Proof.
  intros F large; pose proof (bpow_gt_0 radix2 c).
  assert (M : (c + 1 <= mag radix2 x)%Z) by (apply mag_ge_bpow;
      replace (c + 1 - 1)%Z with c by ring; lra).
  rewrite F; set (e := cexp _ _ _); assert (c - 52 <= e)%Z by (unfold e, cexp, FLT_exp; lia).
  exists (Ztrunc (scaled_mantissa radix2 (FLT_exp (-1074) 53) x) * 2 ^ (e - (c - 52)))%Z.
  unfold F2R; cbn [Fnum Fexp]; rewrite mult_IZR, (IZR_Zpower radix2) by lia.
  rewrite Rmult_assoc, <- bpow_plus; do 3 f_equal; ring.
Qed.

Lemma grid_binary64 n c : (-1022 <= c)%Z -> Rabs (IZR n * power (c - 52)) <= power c ->
  binary64 (IZR n * power (c - 52)).
Proof.
  intros Hc [small | E].
  - apply generic_format_FLT; exists (Float radix2 n (c - 52)); [reflexivity | | simpl; lia].
    cbn [Fnum]; apply lt_IZR; rewrite abs_IZR; rewrite Rabs_mult, (Rabs_right (power _)) in small
      by (apply Rle_ge, bpow_ge_0).
    replace c with (52 + (c - 52))%Z in small at 2 by ring; rewrite bpow_plus in small.
    apply Rmult_lt_reg_r in small; [|apply bpow_gt_0].
    eapply Rlt_trans; [exact small|]; simpl; lra.
  - apply generic_format_abs_inv; rewrite E; apply power_binary64; lia.
Qed.

Section GridStep.

(* C = 2^c; h is the running sum, x the product a b, not rounded. *)
Variables (c : Z) (h x : R).
Hypothesis c_range : (-900 <= c)%Z.
Hypothesis h_binary64 : binary64 h.
Hypothesis h_range : power c <= h <= 2 * power c.
Hypothesis sum_range : power c <= h + x <= 2 * power c.

Definition grid_sum : R := RN (h + x).
Definition grid_part : R := RN (grid_sum - h).
Definition grid_lost : R := x - (grid_sum - h).          (* in exact arithmetic *)

Lemma twice_power : 2 * power c = power (c + 1).
Proof. rewrite Z.add_comm, bpow_plus; reflexivity. Qed.

Lemma grid_sum_range : power c <= grid_sum <= 2 * power c.
Proof.
  rewrite twice_power in *; split; unfold grid_sum; [rewrite <- (RN_exact (power c)) |
    rewrite <- (RN_exact (power (c + 1)))]; try (apply RN_le; lra); apply power_binary64; lia.
Qed.

Theorem grid_part_exact : grid_part = grid_sum - h.
Proof.
  pose proof (bpow_gt_0 radix2 c); pose proof grid_sum_range; apply RN_exact.
  destruct (on_grid grid_sum c) as (n & En); [apply RN_binary64 | rewrite Rabs_right; lra |].
  destruct (on_grid h c) as (n' & En'); [assumption | rewrite Rabs_right; lra |].
  assert (E : grid_sum - h = IZR (n - n') * power (c - 52)) by (rewrite minus_IZR, En, En'; ring).
  rewrite E; apply grid_binary64; [lia|]; rewrite <- E; apply Rabs_le; lra.
Qed.

Theorem grid_lost_small : Rabs grid_lost <= u * power c /\ Rabs grid_lost <= Rabs x.
Proof.
  replace grid_lost with (- (RN (h + x) - (h + x))) by (unfold grid_lost, grid_sum; ring).
  rewrite Rabs_Ropp; split.
  - replace (u * power c) with (power (c + 1 - 54)) by (unfold u; rewrite <- bpow_plus; f_equal;
      ring).
    pose proof (bpow_gt_0 radix2 c); apply RN_error; [lia|].
    rewrite <- twice_power, Rabs_right; lra.
  - replace (Rabs x) with (Rabs (h - (h + x))) by (rewrite <- Rabs_Ropp; f_equal; ring).
    apply RN_near, h_binary64.
Qed.

(* A product of two numbers of 26 bits, or of binary32 numbers, is a binary64 number itself. *)
Theorem grid_lost_binary64 : binary64 x -> binary64 grid_lost.
Proof.
  intros F; replace grid_lost with (- (RN (h + x) - (h + x))) by (unfold grid_lost, grid_sum; ring).
  apply opp_binary64, plus_error; auto with typeclass_instances.
Qed.

(* The program's residual, one more fused operation. *)
Definition grid_residual : R := RN (x - grid_part).

Theorem grid_residual_close : Rabs grid_residual <= u * power c
  /\ Rabs (grid_residual - grid_lost) <= u * u * power c
  /\ (binary64 x -> grid_residual = grid_lost).
Proof.
  destruct grid_lost_small as (small & _); unfold grid_residual; rewrite grid_part_exact.
  fold grid_lost; assert (E : u * power c = power (c - 53)) by (unfold u; rewrite <- bpow_plus;
      f_equal; ring).
  rewrite E in small; repeat split.
  - rewrite E; apply RN_abs_le; [apply power_binary64; lia | exact small].
  - eapply Rle_trans; [apply RN_error with (e := (c - 53)%Z); [lia | exact small]|].
    unfold u; rewrite <- !bpow_plus; apply bpow_le; lia.
  - intros; apply RN_exact, grid_lost_binary64; assumption.
Qed.

End GridStep.
