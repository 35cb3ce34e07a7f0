(* The dot product of the double-double path, accumulated against a large constant
   (oracle/truth/grid_sum-inl.hpp, the variant `fast`).

   In words.  C = 2^c is a power of two with sum_t |a_t b_t| + n 2^-53 C <= C / 2.  The sum `high`
   starts at 1.5 C; each product goes to it by one fused operation (GridStep of ErrorFree.v), and
   what that lost goes to an ordinary sum `low`, which starts at 0.  For n <= 2^22 terms

     |(high - 1.5 C) + low - sum_t a_t b_t| <= (n (n + 1) / 2 + n) (1 + 2^-30) 2^-106 C,

   high - 1.5 C is exact, and so is the pair that TwoSum makes of it and low.  The size of the true
   sum does not matter, nor does cancellation in it. *)

Require Import Reals Lra Lia ZArith List.
From Flocq Require Import Core.
From ringproof Require Import Sums ErrorFree IntegerInterval.
Import ListNotations Enclosure.
Open Scope R_scope.

Section Dot.

Variable c : Z.
Hypothesis c_range : (-900 <= c)%Z.
Notation C := (power c).
Definition start : R := 1.5 * C.

(* One step of the program, from (high, low) to (high', low'). *)
Definition step (sums : R * R) (ab : R * R) : R * R :=
  let (high, low) := sums in let (a, b) := ab in
  let high' := RN (a * b + high) in
  let part := RN (high' - high) in
  let residual := RN (a * b - part) in
  (high', RN (low + residual)).

Definition dot (terms : list (R * R)) : R * R := fold_left step terms (start, 0).

Definition product (ab : R * R) : R := fst ab * snd ab.
Definition exact (terms : list (R * R)) : R := sum product terms.
Definition magnitude (terms : list (R * R)) : R := sum (fun ab => Rabs (product ab)) terms.

Definition growth (n : nat) : R := (1 + u) ^ n.

(* What holds after n terms. *)
Definition holds_after (terms : list (R * R)) (sums : R * R) : Prop :=
  let n := INR (length terms) in
  binary64 (fst sums) /\ binary64 (snd sums)
  /\ Rabs (fst sums - start) <= magnitude terms + n * (u * C)
  /\ Rabs (snd sums) <= n * (u * C) * growth (length terms)
  /\ Rabs (fst sums - start + snd sums - exact terms)
     <= (n * (n + 1) / 2 + n) * (u * u * C) * growth (length terms).

Lemma u_positive : 0 < u.
Proof. apply bpow_gt_0. Qed.

Lemma C_positive : 0 < C.
Proof. apply bpow_gt_0. Qed.

Lemma growth_at_least_one n : 1 <= growth n.
Proof. apply pow_R1_Rle; pose proof u_positive; lra. Qed.

Lemma start_binary64 : binary64 start.
Proof.
  unfold start; replace (1.5 * C) with (F2R (Float radix2 3 (c - 1))).
  - apply generic_format_FLT; exists (Float radix2 3 (c - 1)); simpl; lia || reflexivity.
  - unfold F2R; cbn [Fnum Fexp]; unfold Zminus; rewrite bpow_plus.
    change (power (- (1))) with (/ 2); lra.
Qed.

Lemma step_holds terms sums ab : holds_after terms sums ->
  magnitude (terms ++ [ab]) + INR (length (terms ++ [ab])) * (u * C) <= / 2 * C ->
  holds_after (terms ++ [ab]) (step sums ab).
Proof.
  destruct sums as [h l], ab as [a b]; unfold holds_after, exact, magnitude.
  rewrite app_length, Nat.add_1_r, S_INR, !sum_app; cbn [fst snd sum step length].
  change (product (a, b)) with (a * b); set (x := a * b).
  set (n := INR (length terms)); set (T := sum product terms).
  set (A := sum _ terms); intros (Fh & Fl & near & small & error) room.
  pose proof C_positive as PC; pose proof u_positive as Pu;
      pose proof (growth_at_least_one (length terms)) as G1.
  assert (Pn : 0 <= n) by apply pos_INR; assert (PuC : 0 < u * C) by (apply Rmult_lt_0_compat; lra).
  rewrite (Rplus_0_r (Rabs x)), (Rplus_0_r x) in *.
  assert (h_range : C <= h <= 2 * C).
  { apply Rabs_bounds in near; unfold start in near; pose proof (Rabs_pos x); split; lra. }
  assert (sum_range : C <= h + x <= 2 * C).
  { apply Rabs_bounds in near; unfold start in near; pose proof (Rle_refl (Rabs x)) as X.
    apply Rabs_bounds in X; split; lra. }
  rewrite (Rplus_comm x h); fold (grid_sum h x) (grid_part h x) (grid_residual h x).
  set (lost := grid_lost h x); set (r := grid_residual h x).
  destruct (grid_lost_small c h x c_range Fh h_range sum_range) as (lost_small & _);
      fold lost in lost_small.
  destruct (grid_residual_close c h x c_range Fh h_range sum_range) as (r_small & r_near & _).
  fold r lost in r_small, r_near.
  assert (Fr : binary64 r) by apply RN_binary64.
  assert (Eh : grid_sum h x = h + x - lost) by (unfold lost, grid_lost; ring).
  pose proof (RN_sum_error l r Fl Fr) as low_error; set (l' := RN (l + r)) in *.
  set (g := growth (length terms)) in *; assert (G' : growth (S (length terms)) = g * (1 + u))
    by (unfold g, growth; simpl; ring).
  rewrite G'; assert (lr : Rabs (l + r) <= (n + 1) * (u * C) * g).
  { replace ((n + 1) * (u * C) * g) with (n * (u * C) * g + (u * C) * g) by ring.
    apply Rabs_plus_le; [assumption | nra]. }
  assert (low_error' : Rabs (l' - (l + r)) <= u * ((n + 1) * (u * C) * g)).
  { eapply Rle_trans; [exact low_error | apply Rmult_le_compat_l; lra]. }
  repeat split; try apply RN_binary64.
  - rewrite Eh; replace (h + x - lost - start) with ((h - start) + x - lost) by ring.
    replace (A + Rabs x + (n + 1) * (u * C)) with ((A + n * (u * C)) + Rabs x + u * C) by ring.
    apply Rabs_minus_le; [apply Rabs_plus_le|]; lra.
  - replace l' with ((l + r) + (l' - (l + r))) by ring.
    replace ((n + 1) * (u * C) * (g * (1 + u))) with ((n + 1) * (u * C) * g + u * ((n + 1) * (u *
        C) * g)) by ring.
    apply Rabs_plus_le; assumption.
  - rewrite Eh; replace (h + x - lost - start + l' - (T + x)) with
      ((h - start + l - T) + (r - lost) + (l' - (l + r))) by ring.
    apply Rle_trans with ((n * (n + 1) / 2 + n) * (u * u * C) * g + u * u * C + u * ((n + 1) * (u
        * C) * g)).
    + apply Rabs_plus_le; [apply Rabs_plus_le|]; assumption.
    + set (z := u * u * C); assert (Pz : 0 < z) by (unfold z; apply Rmult_lt_0_compat; nra).
      replace (u * ((n + 1) * (u * C) * g)) with ((n + 1) * z * g) by (unfold z; ring).
      replace (((n + 1) * (n + 1 + 1) / 2 + (n + 1)) * z * (g * (1 + u))) with
        ((n * (n + 1) / 2 + n) * z * g + z * g + (n + 1) * z * g
         + u * (((n + 1) * (n + 1 + 1) / 2 + (n + 1)) * z * g)) by field.
      assert (0 <= u * (((n + 1) * (n + 1 + 1) / 2 + (n + 1)) * z * g)).
      { repeat apply Rmult_le_pos; nra. }
      assert (z <= z * g) by nra; lra.
Qed.

Lemma dot_holds terms : magnitude terms + INR (length terms) * (u * C) <= / 2 * C ->
  holds_after terms (dot terms).
Proof.
  induction terms as [|ab terms IH] using rev_ind; intros room.
  - unfold holds_after, dot; simpl;
      rewrite Rminus_eq_0, !Rplus_0_l, Rminus_0_r, Rabs_R0, !Rmult_0_l.
    repeat split; try lra; [apply start_binary64 | apply zero_binary64].
  - unfold dot; rewrite fold_left_app; apply step_holds; [apply IH | assumption].
    revert room; unfold magnitude; rewrite app_length, Nat.add_1_r, S_INR, sum_app; simpl.
    pose proof C_positive; pose proof u_positive; pose proof (Rabs_pos (product ab)).
    assert (0 < u * C) by (apply Rmult_lt_0_compat; lra); lra.
Qed.

Lemma growth_small n : (n <= Pos.to_nat (2 ^ 22))%nat -> growth n <= 1 + / 2 ^ 30.
Proof.
  intros le; pose proof u_positive as P.
  assert (L : growth n <= exp (INR n * u)).
  { unfold growth; rewrite <- Rpower_pow by lra; unfold Rpower; apply exp_le.
    apply Rmult_le_compat_l; [apply pos_INR|]; rewrite <- (ln_exp u) at 2.
    apply ln_le; [lra | apply exp_at_least]. }
  assert (B : INR n * u <= / 2 ^ 31).
  { apply Rle_trans with (INR (Pos.to_nat (2 ^ 22)) * u).
    - apply Rmult_le_compat_r; [lra | apply le_INR, le].
    - rewrite INR_IZR_INZ, positive_nat_Z, u_value; change (2 ^ 22)%positive with 4194304%positive.
      lra. }
  eapply Rle_trans; [exact L|]; eapply Rle_trans; [apply exp_le, B|]; interval with (i_prec 80).
Qed.

(* Taking the start off is exact while the sum stays near it. *)
Lemma start_taken_off h : binary64 h -> Rabs (h - start) <= / 2 * C -> RN (h - start) = h - start.
Proof.
  intros Fh near; pose proof C_positive; apply RN_exact.
  assert (between := Rabs_bounds _ _ near); unfold start in between.
  destruct (on_grid h c) as (k & Ek); [assumption | rewrite Rabs_right; lra |].
  destruct (on_grid start c) as (k' & Ek');
    [apply start_binary64 | unfold start; rewrite Rabs_right; lra |].
  assert (Ed : h - start = IZR (k - k') * power (c - 52)) by (rewrite minus_IZR, Ek, Ek'; ring).
  rewrite Ed; apply grid_binary64; [lia | rewrite <- Ed; lra].
Qed.

(* The program's result: the high sum taken off its start, and the pair with the low one. *)
Definition result_high (terms : list (R * R)) : R := RN (fst (dot terms) - start).

Theorem dot_product_error terms : (length terms <= Pos.to_nat (2 ^ 22))%nat ->
  magnitude terms + INR (length terms) * (u * C) <= / 2 * C ->
  let n := INR (length terms) in let low := snd (dot terms) in
  result_high terms = fst (dot terms) - start
  /\ RN (result_high terms + low) + two_sum_low (result_high terms) low = result_high terms + low
  /\ Rabs (result_high terms + low - exact terms)
     <= (n * (n + 1) / 2 + n) * (1 + / 2 ^ 30) * (u * u * C).
Proof.
  intros few room n low; destruct (dot_holds terms room) as (Fh & Fl & near & _ & error).
  fold n low in near, Fl, error; pose proof C_positive; pose proof u_positive.
  assert (E : result_high terms = fst (dot terms) - start)
    by (apply start_taken_off; [assumption | fold n in room; lra]).
  split; [exact E | split; [apply two_sum_exact; [apply RN_binary64 | exact Fl] | rewrite E]].
  eapply Rle_trans; [exact error|].
  assert (0 <= n) by apply pos_INR; assert (0 < u * u * C) by (apply Rmult_lt_0_compat; nra).
  replace ((n * (n + 1) / 2 + n) * (1 + / 2 ^ 30) * (u * u * C)) with
    ((n * (n + 1) / 2 + n) * (u * u * C) * (1 + / 2 ^ 30)) by ring.
  apply Rmult_le_compat_l; [apply Rmult_le_pos; nra | apply growth_small, few].
Qed.

(* The program chooses C from a number m that is not below the magnitude, by a margin that its own
   rounding leaves: C / 4 <= m < C / 2, or C is larger still.  Up to 2^19 terms that is room enough.
   *)
Theorem room_suffices terms m : (length terms <= Pos.to_nat (2 ^ 19))%nat ->
  magnitude terms * (1 + / 2 ^ 31) <= m -> m < / 2 * C ->
  magnitude terms + INR (length terms) * (u * C) <= / 2 * C.
Proof.
  intros few above below; pose proof C_positive as PC.
  assert (count : INR (length terms) * u <= / 2 ^ 34).
  { apply Rle_trans with (INR (Pos.to_nat (2 ^ 19)) * u).
    - apply Rmult_le_compat_r; [left; apply u_positive | apply le_INR, few].
    - rewrite INR_IZR_INZ, positive_nat_Z, u_value; change (2 ^ 19)%positive with 524288%positive;
        lra. }
  rewrite <- Rmult_assoc; apply Rle_trans with (magnitude terms + / 2 ^ 34 * C);
    [apply Rplus_le_compat_l, Rmult_le_compat_r; lra|].
  destruct (Rle_or_lt (magnitude terms) (/ 8 * C)); lra.
Qed.

End Dot.
