(* The sum of weights times values of one tile (oracle/truth/grid_sum-inl.hpp, Accumulator, variant
   `fast`): like the dot product of DotProduct.v, with weights of two words.

   In words.  A weight is ph + pl with sum_j |pl_j v_j| <= 2^-53 C / 2, as |pl| <= 2^-53 |ph| gives.
   The high products go to `high` against the constant C = 2^c; what that loses is added to pl v by
   a fused operation, and the sum of both to `low`.  With sum_j |ph_j v_j| + n 2^-53 C <= C / 2 and
   n <= 2^20 terms

     |(high - 1.5 C) + low - sum_j (ph_j + pl_j) v_j| <= (n^2 + 3 n) (1 + 2^-30) 2^-106 C. *)

Require Import Reals Lra Lia ZArith List.
From Flocq Require Import Core.
From ringproof Require Import Sums ErrorFree DotProduct.
Import ListNotations.
Open Scope R_scope.

(* The two words of a weight, and the value. *)
Record term := Term { ph : R; pl : R; v : R }.

Section Sum.

Variable c : Z.
Hypothesis c_range : (-900 <= c)%Z.
Notation C := (power c).
Notation start := (start c).

Definition step (sums : R * R) (x : term) : R * R :=
  let (high, low) := sums in
  let high' := RN (ph x * v x + high) in
  let part := RN (high' - high) in
  let residual := RN (ph x * v x - part) in
  (high', RN (low + RN (pl x * v x + residual))).

Definition weighted (terms : list term) : R * R := fold_left step terms (start, 0).

Definition exact (terms : list term) : R := sum (fun x => (ph x + pl x) * v x) terms.
Definition magnitude (terms : list term) : R := sum (fun x => Rabs (ph x * v x)) terms.
Definition low_magnitude (terms : list term) : R := sum (fun x => Rabs (pl x * v x)) terms.

Definition enough_room (terms : list term) : Prop :=
  magnitude terms + INR (length terms) * (u * C) <= / 2 * C /\ low_magnitude terms <= / 2 * (u * C).

(* What holds after n terms. *)
Definition holds_after (terms : list term) (sums : R * R) : Prop :=
  let n := INR (length terms) in let g := growth (2 * length terms + 1) in
  binary64 (fst sums) /\ binary64 (snd sums)
  /\ Rabs (fst sums - start) <= magnitude terms + n * (u * C)
  /\ Rabs (snd sums) <= (n * (u * C) + low_magnitude terms) * g
  /\ Rabs (fst sums - start + snd sums - exact terms) <= (n * n + 3 * n) * (u * u * C) * g.

(* Underflow is far below anything here. *)
Lemma underflow_small : power (-1075) <= u * (u * u * C).
Proof. unfold u; rewrite <- !bpow_plus; apply bpow_le; lia. Qed.

Lemma grows a b : 0 <= a -> 1 <= b -> a <= a * b.
Proof. intros; rewrite <- (Rmult_1_r a) at 1; apply Rmult_le_compat_l; assumption. Qed.

Lemma step_holds terms sums x : holds_after terms sums -> enough_room (terms ++ [x]) ->
  holds_after (terms ++ [x]) (step sums x).
Proof.
  unfold holds_after, enough_room, exact, magnitude, low_magnitude.
  replace (length (terms ++ [x])) with (S (length terms)) by (rewrite app_length; simpl; lia).
  destruct sums as [h l], x as [p q y].
  rewrite S_INR, !sum_app; cbn [fst snd sum step ph pl v].
  set (n := INR (length terms)); set (T := sum (fun z => (ph z + pl z) * v z) terms);
  set (A := sum (fun z => Rabs (ph z * v z)) terms).
  set (Q := sum (fun z => Rabs (pl z * v z)) terms).
  intros (Fh & Fl & near & small & error) (room & low_room).
  rewrite !Rplus_0_r in *; set (x := p * y) in *; set (z := q * y) in *.
  pose proof (C_positive c) as PC; pose proof u_positive as Pu;
      assert (Pn : 0 <= n) by apply pos_INR.
  set (U := u * C) in *; assert (PU : 0 < U) by (apply Rmult_lt_0_compat; lra).
  pose proof (Rabs_pos x) as Px; pose proof (Rabs_pos z) as Pz.
  assert (PQ : 0 <= Q) by (apply sum_nonneg; intros; apply Rabs_pos).
  assert (h_range : C <= h <= 2 * C).
  { apply Rabs_bounds in near; unfold DotProduct.start in near; split; lra. }
  assert (sum_range : C <= h + x <= 2 * C).
  { apply Rabs_bounds in near; unfold DotProduct.start in near.
    pose proof (Rabs_bounds _ _ (Rle_refl (Rabs x))); split; lra. }
  rewrite (Rplus_comm x h); fold (grid_sum h x) (grid_part h x) (grid_residual h x).
  destruct (grid_lost_small c h x c_range Fh h_range sum_range) as (lost_small & _).
  destruct (grid_residual_close c h x c_range Fh h_range sum_range) as (r_small & r_near & _).
  set (lost := grid_lost h x) in *; set (r := grid_residual h x) in *;
      fold U in r_small, lost_small.
  assert (Eh : grid_sum h x = h + x - lost) by (unfold lost, grid_lost; ring).
  pose proof (RN_relative (z + r)) as first; set (t := RN (z + r)) in *.
  pose proof (RN_sum_error l t Fl (RN_binary64 _)) as second; set (l2 := RN (l + t)) in *.
  set (g := growth (2 * length terms + 1)) in *.
  assert (G1 : 1 + u <= g).
  { unfold g, growth; rewrite Nat.add_1_r; simpl pow; rewrite <- (Rmult_1_r (1 + u)) at 1.
    apply Rmult_le_compat_l; [lra | apply growth_at_least_one]. }
  assert (G' : growth (2 * S (length terms) + 1) = g * (1 + u) * (1 + u)).
  { unfold g, growth;
      replace (2 * S (length terms) + 1)%nat with (S (S (2 * length terms + 1))) by lia.
    simpl pow; ring. }
  rewrite G'; set (B := n * U + Q) in *; assert (PB : 0 <= B) by (unfold B; nra).
  pose proof underflow_small as tiny; assert (EuC : u * u * C = u * U) by (unfold U; ring).
  rewrite EuC in *; set (w := u * U) in *; assert (Pw : 0 < w) by (apply Rmult_lt_0_compat; lra).
  (* The two roundings of the low sum. *)
  assert (u1 : u <= 1) by (rewrite u_value; lra).
  set (e := power (-1075)) in *; set (a := Rabs z + U); set (k := g * (1 + u)) in *.
  assert (Pa : 0 <= a) by (unfold a; lra).
  assert (g_k : g <= k) by (unfold k; apply grows; lra).
  assert (u_k : 1 + u <= k) by lra.
  assert (e_w : e <= u * w) by exact tiny.
  assert (w_a : w <= u * a) by (unfold w, a; apply Rmult_le_compat_l; lra).
  assert (e_a : e <= u * a).
  { apply Rle_trans with w; [|exact w_a]; apply Rle_trans with (u * w); [exact e_w|].
    rewrite <- (Rmult_1_l w) at 2; apply Rmult_le_compat_r; lra. }
  assert (zr : Rabs (z + r) <= a) by (apply Rabs_plus_le; [apply Rle_refl | exact r_small]).
  assert (first' : Rabs (t - (z + r)) <= u * a + e).
  { eapply Rle_trans; [exact first|]; apply Rplus_le_compat_r, Rmult_le_compat_l; lra. }
  set (m := a * (1 + u) + e).
  assert (t_small : Rabs t <= m).
  { replace t with ((z + r) + (t - (z + r))) by ring.
    replace m with (a + (u * a + e)) by (unfold m; ring); apply Rabs_plus_le; assumption. }
  assert (lt : Rabs (l + t) <= B * g + m) by (apply Rabs_plus_le; assumption).
  assert (second' : Rabs (l2 - (l + t)) <= u * (B * g + m))
    by (eapply Rle_trans; [exact second | apply Rmult_le_compat_l; lra]).
  assert (both : B * g + m <= (B + a) * k).
  { assert (B * g <= B * k) by (apply Rmult_le_compat_l; lra).
    assert (m <= a * k).
    { apply Rle_trans with (a * ((1 + u) * (1 + u))).
      - unfold m; replace (a * ((1 + u) * (1 + u))) with (a * (1 + u) + u * a + u * a * u) by ring.
        assert (0 <= u * a * u) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra); lra.
      - apply Rmult_le_compat_l; [lra|]; unfold k; apply Rmult_le_compat_r; lra. }
    replace ((B + a) * k) with (B * k + a * k) by ring; lra. }
  repeat split; try apply RN_binary64.
  - rewrite Eh; replace (h + x - lost - start) with ((h - start) + x - lost) by ring.
    replace (A + Rabs x + (n + 1) * U) with ((A + n * U) + Rabs x + U) by ring.
    apply Rabs_minus_le; [apply Rabs_plus_le; [exact near | apply Rle_refl] | exact lost_small].
  - replace l2 with ((l + t) + (l2 - (l + t))) by ring.
    apply Rle_trans with ((B * g + m) + u * (B * g + m)); [apply Rabs_plus_le; assumption|].
    replace ((n + 1) * U + (Q + Rabs z)) with (B + a) by (unfold B, a; ring).
    replace (B * g + m + u * (B * g + m)) with ((B * g + m) * (1 + u)) by ring.
    rewrite <- Rmult_assoc; apply Rmult_le_compat_r; [lra | exact both].
  - rewrite Eh; replace (h + x - lost - start + l2 - (T + (p + q) * y)) with
      ((h - start + l - T) + (r - lost) + (t - (z + r)) + (l2 - (l + t))) by (unfold x, z; ring).
    apply Rle_trans with ((n * n + 3 * n) * w * g + w + (u * a + e) + u * (B * g + m));
      [apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_plus_le|]|]; assumption|].
    assert (HB : B + Rabs z <= (n + / 2) * U) by (unfold B; lra).
    set (M := n + 3 / 2) in *; assert (PM : 0 < M) by (unfold M; lra).
    assert (BU : B + a <= M * U) by (unfold M, a; lra).
    assert (Pwk : 0 <= w * k) by (apply Rmult_le_pos; lra).
    assert (w_k : w <= w * k) by (apply grows; lra).
    assert (US : u * (B * g + m) <= M * (w * k)).
    { replace (M * (w * k)) with (u * (M * U * k)) by (unfold w; ring).
      apply Rmult_le_compat_l; [lra|]; apply Rle_trans with ((B + a) * k); [exact both|].
      apply Rmult_le_compat_r; lra. }
    assert (UA : u * a <= M * (w * k)).
    { apply Rle_trans with (M * w); [|apply Rmult_le_compat_l; lra].
      replace (M * w) with (u * (M * U)) by (unfold w; ring).
      apply Rmult_le_compat_l; lra. }
    set (s := n * n + 3 * n) in *; assert (Ps : 0 <= s) by (unfold s; nra).
    assert (old : s * w * g <= s * (w * k)).
    { rewrite Rmult_assoc; apply Rmult_le_compat_l, Rmult_le_compat_l; lra. }
    assert (small_ones : w + e <= w * k).
    { pose proof (Rmult_le_compat_l w (1 + u) k ltac:(lra) u_k); lra. }
    replace ((n + 1) * (n + 1) + 3 * (n + 1)) with (s + M + M + 1) by (unfold s, M; field).
    apply Rle_trans with ((s + M + M + 1) * (w * k)).
    { replace ((s + M + M + 1) * (w * k)) with (s * (w * k) + w * k + M * (w * k) + M * (w * k))
        by ring.
      lra. }
    replace ((s + M + M + 1) * w * (k * (1 + u))) with ((s + M + M + 1) * (w * k) * (1 + u))
        by ring.
    apply grows; [|lra]; apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra].
Qed.

Lemma weighted_holds terms : enough_room terms -> holds_after terms (weighted terms).
Proof.
  induction terms as [|x terms IH] using rev_ind; intros room.
  - unfold holds_after, weighted, exact, magnitude, low_magnitude; simpl.
    rewrite Rminus_eq_0, !Rplus_0_l, Rminus_0_r, Rabs_R0, !Rmult_0_l.
    repeat split; try lra; [apply start_binary64; assumption | apply zero_binary64].
  - unfold weighted; rewrite fold_left_app; apply step_holds; [apply IH | assumption].
    revert room; unfold enough_room, magnitude, low_magnitude.
    rewrite app_length, Nat.add_1_r, S_INR, !sum_app; simpl; intros (room & low_room).
    pose proof (C_positive c); pose proof u_positive;
        assert (0 < u * C) by (apply Rmult_lt_0_compat; lra).
    pose proof (Rabs_pos (ph x * v x)); pose proof (Rabs_pos (pl x * v x)); split; lra.
Qed.

(* The program's result, as for the dot product. *)
Definition result_high (terms : list term) : R := RN (fst (weighted terms) - start).

Theorem weighted_sum_error terms : (length terms <= Pos.to_nat (2 ^ 20))%nat -> enough_room terms ->
  let n := INR (length terms) in let low := snd (weighted terms) in
  result_high terms = fst (weighted terms) - start
  /\ RN (result_high terms + low) + two_sum_low (result_high terms) low = result_high terms + low
  /\ Rabs (result_high terms + low - exact terms)
     <= (n * n + 3 * n) * (1 + / 2 ^ 30) * (u * u * C).
Proof.
  intros few room n low; destruct (weighted_holds terms room) as (Fh & Fl & near & _ & error).
  destruct room as (room & _); fold n low in room, near, Fl, error.
  pose proof (C_positive c); pose proof u_positive.
  assert (E : result_high terms = fst (weighted terms) - start)
    by (apply start_taken_off; [assumption | assumption | lra]).
  split; [exact E | split; [apply two_sum_exact; [apply RN_binary64 | exact Fl] | rewrite E]].
  eapply Rle_trans; [exact error|].
  assert (0 <= n) by apply pos_INR; assert (0 < u * u * C) by (apply Rmult_lt_0_compat; nra).
  replace ((n * n + 3 * n) * (1 + / 2 ^ 30) * (u * u * C)) with
    ((n * n + 3 * n) * (u * u * C) * (1 + / 2 ^ 30)) by ring.
  apply Rmult_le_compat_l; [apply Rmult_le_pos; nra | apply growth_small; lia].
Qed.

End Sum.

(* Not vacuous: 64 weights of 1/64 and values of 1/8 fit C = 1. *)
Theorem room_example : enough_room 0 (repeat (Term (/ 64) (/ 2 ^ 60) (/ 8)) 64).
Proof.
  unfold enough_room, magnitude, low_magnitude; rewrite repeat_length.
  assert (same : forall f n, sum f (repeat (Term (/ 64) (/ 2 ^ 60) (/ 8)) n)
                             = INR n * f (Term (/ 64) (/ 2 ^ 60) (/ 8))).
  { intros f; induction n as [|n IH]; [simpl; ring|]; cbn [repeat sum]; rewrite IH, S_INR; ring. }
  rewrite !same; cbn [ph pl v]; rewrite !Rabs_right by (apply Rle_ge; simpl; lra).
  rewrite INR_IZR_INZ, u_value; simpl; lra.
Qed.
