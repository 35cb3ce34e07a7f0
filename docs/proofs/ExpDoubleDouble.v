(* exp in double-double (oracle/truth/exp_dd-inl.hpp) satisfies its stated error bound.

   In words.  For x = xh + xl with two binary64 numbers |xl| <= 2^-53 |xh|, |xh| <= 691, the program
   of ExpProgram.v returns a pair whose sum is within

       (2^-101 + 2^-104 |x|) exp(x) + 2^-1074

   of exp(x).  The last term is the underflow of the low word, when that is scaled for x below -675.
   What Gappa proves about the roundings appears as three premises with the names of its scripts. *)

Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core Mult_error.
From ringproof Require Import Sums ErrorFree IntegerInterval ExpConstants ExpTable ExpProgram.
Import Enclosure.
Open Scope R_scope.

(* ---------- k is an integer ---------- *)

Lemma shift_value : shift = IZR (3 * 2 ^ 51).
Proof. unfold shift; simpl; lra. Qed.

Lemma power_value n : (0 <= n)%Z -> power n = IZR (2 ^ n).
Proof. intros; symmetry; apply (IZR_Zpower radix2); assumption. Qed.

Lemma integer_binary64 n : (Z.abs n <= 2 ^ 52)%Z -> binary64 (IZR n).
Proof.
  intros le; replace (IZR n) with (IZR n * power (52 - 52)) by (simpl; ring).
  apply grid_binary64; [lia|]; simpl (power (52 - 52)); rewrite Rmult_1_r, <- abs_IZR.
  rewrite power_value by lia; apply IZR_le, le.
Qed.

Lemma k_is_integer xh : Rabs xh <= 691 ->
  exists n : Z, k xh = IZR n /\ (Z.abs n < 64 * 1000)%Z.
Proof.
  intros range; apply Rabs_bounds in range; set (s := RN (xh * inverse)).
  assert (small : - IZR 63900 <= s <= IZR 63900).
  { apply Rabs_bounds, RN_abs_le; [apply integer_binary64; lia|].
    unfold inverse; simpl; interval with (i_prec 60). }
  assert (P52 := power_value 52 ltac:(lia)); assert (P53 := power_value 53 ltac:(lia)).
  assert (B : power 52 <= biased xh <= power 53).
  { unfold biased; fold s; rewrite shift_value; split;
      [rewrite <- (RN_exact (power 52)) | rewrite <- (RN_exact (power 53))];
      try (apply power_binary64; lia); apply RN_le; rewrite ?P52, ?P53; simpl; lra. }
  destruct (on_grid (biased xh) 52) as (n & En);
    [apply RN_binary64 | rewrite Rabs_right by (rewrite P52 in B; simpl in B; lra); apply B |].
  replace (52 - 52)%Z with 0%Z in En by ring; simpl (power 0) in En; rewrite Rmult_1_r in En.
  assert (near : Rabs (biased xh - (s + shift)) <= 1).
  { eapply Rle_trans; [apply (RN_error _ 53); [lia|] | simpl; lra].
    fold s; rewrite shift_value, P53; apply Rabs_le; simpl; lra. }
  assert (E : biased xh - shift = IZR (n - 3 * 2 ^ 51)) by (rewrite shift_value, minus_IZR, En;
      ring).
  apply Rabs_bounds in near.
  assert (range' : (Z.abs (n - 3 * 2 ^ 51) < 64 * 1000)%Z).
  { apply lt_IZR; rewrite abs_IZR, <- E; apply Rabs_def1; simpl; lra. }
  exists (n - 3 * 2 ^ 51)%Z; unfold k; rewrite E, RN_exact by (apply integer_binary64; lia); easy.
Qed.

(* ---------- the reduced argument ---------- *)

Lemma reduction_near_zero xh xl : binary64 xh -> binary64 xl ->
  Rabs xl <= power (-53) * Rabs xh -> Rabs xh <= power (-8) -> k xh = 0 ->
  r error_of_sum xh xl + rl error_of_sum xh xl = xh + xl
  /\ Rabs (r error_of_sum xh xl) <= 0.00542 /\ Rabs (rl error_of_sum xh xl) <= power (-60).
Proof.
  intros Fh Fl le small Zk.
  assert (Et : t xh = xh) by (unfold t; rewrite Zk, Rmult_0_l, Rminus_0_r; apply RN_exact, Fh).
  assert (Em : m xh = 0) by (unfold m; rewrite Zk, Rmult_0_l; apply RN_exact, zero_binary64).
  assert (Er : r0 xh = xh) by (unfold r0; rewrite Et, Em, Rplus_0_r; apply RN_exact, Fh).
  assert (El : l0 error_of_sum xh xl = xl).
  { unfold l0, w, error_of_sum; rewrite Et, Em, Zk, Rmult_0_l, Rminus_0_r, Rplus_0_r.
    rewrite !(RN_exact xh), Rminus_eq_0, Rplus_0_l by assumption;
        now rewrite !RN_exact by (rewrite ?RN_exact; assumption). }
  unfold r, rl; rewrite Er, El; unfold error_of_sum.
  assert (total : Rabs (xh + xl) <= power (-7)).
  { replace (power (-7)) with (power (-8) + power (-8)) by (simpl; lra).
    apply Rabs_plus_le; [assumption|]; eapply Rle_trans; [exact le|].
    pose proof (Rabs_pos xh); simpl in *; lra. }
  pose proof (RN_error (xh + xl) (-7) ltac:(lia) total) as lost.
  repeat split; [ring | | rewrite <- Rabs_Ropp, Ropp_minus_distr; eapply Rle_trans;
      [exact lost | simpl; lra]].
  replace (RN (xh + xl)) with (xh + (xl + (RN (xh + xl) - (xh + xl)))) by ring.
  replace 0.00542 with (power (-8) + (0.00542 - power (-8))) by ring.
  apply Rabs_plus_le; [assumption|].
  apply Rle_trans with (power (-61) + power (-61)); [|simpl; lra].
  apply Rabs_plus_le; [|exact lost]; eapply Rle_trans; [exact le|].
  apply Rle_trans with (power (-53) * power (-8)); [|simpl; lra].
  apply Rmult_le_compat_l; [apply bpow_ge_0 | assumption].
Qed.

(* One statement for all arguments. *)
Lemma reduction xh xl : exp_reduction_g -> exp_reduction_near_zero_g ->
  binary64 xh -> binary64 xl -> Rabs xl <= power (-53) * Rabs xh -> Rabs xh <= 691 ->
  let r := r two_sum_low xh xl in let rl := rl two_sum_low xh xl in
  Rabs (xh + xl - k xh * ln2_64 - (r + rl)) <= 0x1.2p-105 * Rabs xh
  /\ Rabs r <= 0.00542 /\ Rabs rl <= power (-60).
Proof.
  intros far near Fh Fl le range; destruct (reduction_low_words xh xl) as (-> & ->).
  destruct (Rle_or_lt (power (-8)) (Rabs xh)) as [large | small].
  - destruct (far xh xl) as (E & ? & ?); try assumption; [lra|]; repeat split; trivial.
    assert (P : 0 < Rabs xh) by (simpl in large; lra).
    unfold Rdiv in E; rewrite Rabs_mult, Rabs_inv in E.
    rewrite <- Rabs_Ropp, Ropp_minus_distr; apply (Rmult_le_reg_r (/ Rabs xh));
      [apply Rinv_0_lt_compat, P|].
    rewrite Rmult_assoc, Rinv_r, Rmult_1_r by lra; exact E.
  - assert (Zk : k xh = 0) by (apply near; trivial; lra).
    destruct (reduction_near_zero xh xl) as (E & ? & ?); trivial; [lra|]; repeat split; trivial.
    rewrite E, Zk, Rmult_0_l, Rminus_0_r, Rminus_eq_0, Rabs_R0.
    apply Rmult_le_pos; [simpl; lra | apply Rabs_pos].
Qed.

(* ---------- the last steps, in exact numbers ---------- *)

Lemma power_exp n : power n = exp (IZR n * ln 2).
Proof. apply (bpow_exp radix2). Qed.

(* P approximates T taylor(R), and R is what is left of x up to d: so P approximates T exp(R + d).
   *)
Lemma join T P R d : 1 <= T <= 2 -> Rabs R <= 543 / 100000 -> Rabs d <= / 2 ^ 90 ->
  Rabs (P - T * taylor R) <= power (-102) ->
  Rabs (P - T * exp (R + d)) <= (power (-101) + 1.01 * Rabs d) * (T * exp (R + d)).
Proof.
  intros HT HR Hd HP; pose proof (taylor_remainder R HR) as series.
  set (Y := T * exp (R + d)).
  assert (large : 0.99 <= Y).
  { apply Rle_trans with (1 * exp (- (6 / 1000))); [interval with (i_prec 60)|].
    apply Rmult_le_compat; [lra | left; apply exp_pos | lra | apply exp_le].
    apply Rabs_bounds in HR, Hd; simpl in Hd; lra. }
  replace (P - Y) with ((P - T * taylor R) + - (T * (exp R - taylor R)) + Y * expm1 (- d)).
  2: { assert (E : Y * exp (- d) = T * exp R)
         by (unfold Y; rewrite Rmult_assoc, <- exp_plus; do 2 f_equal; ring).
       unfold expm1; replace (Y * (exp (- d) - 1)) with (Y * exp (- d) - Y) by ring; rewrite E;
           ring. }
  rewrite Rmult_plus_distr_r; apply Rabs_plus_le.
  - apply Rle_trans with (power (-102) + 2 * / 2 ^ 118).
    + apply Rabs_plus_le; [exact HP|]; rewrite Rabs_Ropp; apply Rabs_mult_le; trivial.
      rewrite Rabs_right; lra.
    + apply Rle_trans with (power (-101) * 0.99); [simpl; lra|].
      apply Rmult_le_compat_l; [apply bpow_ge_0 | exact large].
  - rewrite Rmult_comm; apply Rabs_mult_le; [|rewrite Rabs_right; lra].
    pose proof (Rabs_pos d); eapply Rle_trans; [apply Rabs_expm1_le; rewrite Rabs_Ropp;
        apply Rle_refl|].
    pose proof (exp_inverse (Rabs d)); pose proof (exp_at_least (- Rabs d));
        pose proof (exp_pos (Rabs d)).
    assert (Rabs d <= / 1000) by (simpl in Hd; lra); unfold expm1; nra.
Qed.

(* Scaling by a power of two is exact, but for the low word when it underflows. *)
Lemma scaled_low x n : binary64 x -> Rabs (RN (x * power n) - x * power n) <= power (-1075).
Proof.
  intros F; destruct (Rle_or_lt (Rabs (x * power n)) (power (-1021))) as [small | large].
  - apply (RN_error _ (-1021)); [lia | exact small].
  - assert (nz : x <> 0).
    { intros ->; rewrite Rmult_0_l, Rabs_R0 in large; pose proof (bpow_ge_0 radix2 (-1021)); lra. }
    rewrite RN_exact, Rminus_eq_0, Rabs_R0; [apply bpow_ge_0|].
    apply mult_bpow_exact_FLT; [exact F|].
    apply Rlt_le, (mag_ge_bpow radix2 (x * power n) (-1020)) in large.
    rewrite mag_mult_bpow in large by exact nz; lia.
Qed.

Lemma scaled_high x n : binary64 x -> power (-1) <= Rabs x -> (-1020 <= n)%Z ->
  RN (x * power n) = x * power n.
Proof.
  intros F large Hn; apply RN_exact, mult_bpow_exact_FLT; [exact F|].
  apply (mag_ge_bpow radix2 x 0) in large; lia.
Qed.

(* ---------- the theorem ---------- *)

(* The table index and the exponent are the remainder and the quotient of k by 64. *)
Definition table_value (k : Z) : R := exp (IZR (k mod 64) * ln2_64).

Theorem exp_dd_bound :
  exp_reduction_g -> exp_reduction_near_zero_g -> exp_polynomial_g ->
  forall xh xl, binary64 xh -> binary64 xl ->
  Rabs xl <= power (-53) * Rabs xh -> Rabs xh <= 691 ->
  exists n : Z, k xh = IZR n /\
  forall th tl, binary64 th -> binary64 tl -> 1 <= th <= 2 -> Rabs tl <= power (-53) ->
  Rabs (th + tl - table_value n) <= power (-106) ->
  let (hi, lo) := exp_dd th tl (n / 64) xh xl in
  Rabs (hi + lo - exp (xh + xl))
  <= (power (-101) + power (-104) * Rabs (xh + xl)) * exp (xh + xl) + power (-1074).
Proof.
  intros far near polynomial xh xl Fh Fl le range.
  destruct (k_is_integer xh range) as (n & En & Hn); exists n; split; [exact En|].
  intros th tl Fth Ftl Hth Htl entry; unfold exp_dd.
  destruct (reduction xh xl far near Fh Fl le range) as (Ed & Hr & Hrl); rewrite En in Ed.
  assert (Frl : binary64 (rl two_sum_low xh xl)) by apply RN_binary64.
  set (r := r two_sum_low xh xl) in *; set (rl := rl two_sum_low xh xl) in *.
  assert (Fr : binary64 r) by apply RN_binary64.
  assert (index : (0 <= n mod 64 < 64)%Z) by (apply Z.mod_pos_bound; lia).
  pose proof (table_range _ index) as HT; fold ln2_64 in HT; fold (table_value n) in HT.
  set (T := table_value n) in *.
  destruct (polynomial r rl th tl T) as (_ & HP & A5 & A4 & A3 & A2 & A1 & A0 & Hp & Hq); trivial.
  assert (Ey := polynomial_low_words r rl A5 A4 A3 A2 A1 A0).
  assert (Ep : p fast_two_sum_low r rl th = p error_of_sum r rl th) by (unfold p; rewrite Ey; easy).
  assert (Eq : q fast_two_sum_low r rl th tl = q error_of_sum r rl th tl)
    by (unfold q; rewrite Ep, Ey; easy).
  rewrite Ep, Eq; assert (Fp : binary64 (p error_of_sum r rl th)) by apply RN_binary64.
  assert (Fq : binary64 (q error_of_sum r rl th tl)) by apply RN_binary64.
  set (p := p error_of_sum r rl th) in *; set (q := q error_of_sum r rl th tl) in *.
  simpl (power (-50)) in Hq; apply Rabs_bounds in Hq.
  assert (order : Rabs q <= Rabs p) by (rewrite (Rabs_right p) by lra; apply Rabs_le; lra).
  assert (exponent : (-1000 <= n / 64)%Z) by (apply Z.div_le_lower_bound; lia).
  rewrite scaled_high; [| apply RN_binary64 | | lia].
  2: { apply Rle_trans with (RN (power (-1))); [rewrite RN_exact; [lra | apply power_binary64;
      lia]|].
       eapply Rle_trans; [|apply Rle_abs]; apply RN_le; simpl; lra. }
  (* In exact numbers: x = k ln2/64 + (r + rl) + d. *)
  set (d := xh + xl - IZR n * ln2_64 - (r + rl)) in *; set (x := xh + xl) in *.
  assert (Ex : exp x = power (n / 64) * (T * exp (r + rl + d))).
  { rewrite power_exp; unfold T, table_value; rewrite <- !exp_plus; f_equal.
    assert (E : IZR n = 64 * IZR (n / 64) + IZR (n mod 64))
      by (rewrite <- mult_IZR, <- plus_IZR; f_equal; apply Z.div_mod; lia).
    unfold d, ln2_64; rewrite E; field. }
  pose proof (bpow_gt_0 radix2 (n / 64)) as PE; set (scale := power (n / 64)) in *.
  (* d is small: the error of the reduction. *)
  assert (Px := Rabs_pos xh); assert (le' : Rabs xh <= 1.001 * Rabs x).
  { assert (Rabs xh <= Rabs x + Rabs xl)
      by (replace xh with (x - xl) by (unfold x; ring); apply Rabs_minus_le; apply Rle_refl).
    simpl (power (-53)) in le; lra. }
  assert (C : 0x1.2p-105 * 1.001 * 1.01 <= power (-104)) by (simpl; lra).
  assert (Hd : 1.01 * Rabs d <= power (-104) * Rabs x).
  { apply Rle_trans with (1.01 * (0x1.2p-105 * (1.001 * Rabs x))).
    - apply Rmult_le_compat_l; [lra|]; eapply Rle_trans; [exact Ed|].
      apply Rmult_le_compat_l; [simpl; lra | exact le'].
    - pose proof (Rabs_pos x); nra. }
  assert (Hd' : Rabs d <= / 2 ^ 90).
  { eapply Rle_trans; [exact Ed|]; apply Rle_trans with (0x1.2p-105 * 691); [|simpl; lra].
    apply Rmult_le_compat_l; [simpl; lra | exact range]. }
  assert (HR : Rabs (r + rl) <= 543 / 100000).
  { replace (543 / 100000) with (0.00542 + 0.00001) by lra; apply Rabs_plus_le; [lra|].
    eapply Rle_trans; [exact Hrl | simpl; lra]. }
  pose proof (join T (p + q) (r + rl) d HT HR Hd' HP) as J.
  rewrite Ex; set (Y := T * exp (r + rl + d)) in *.
  assert (PY : 0 < Y) by (apply Rmult_lt_0_compat; [lra | apply exp_pos]).
  (* The pair is p + q, scaled; only the low word may lose something. *)
  set (low := fast_two_sum_low p q); assert (Fl' : binary64 low) by apply RN_binary64.
  pose proof (scaled_low low (n / 64) Fl') as lost; fold scale in lost.
  replace (RN (p + q) * scale + RN (low * scale) - scale * Y)
    with (scale * (p + q - Y) + (RN (low * scale) - low * scale))
    by (rewrite <- (fast_two_sum_exact p q Fp Fq order) at 1; fold low; ring).
  apply Rabs_plus_le; [|eapply Rle_trans; [exact lost | apply bpow_le; lia]].
  replace (_ * (scale * Y)) with (scale * ((power (-101) + power (-104) * Rabs x) * Y)) by ring.
  apply Rabs_mult_le; [rewrite Rabs_right; lra|].
  eapply Rle_trans; [exact J | apply Rmult_le_compat_r; lra].
Qed.
