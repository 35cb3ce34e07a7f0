(* The ring schedule lets every rank meet every block exactly once.

   In words.  P ranks sit in a ring; rank r starts with block r, and in every step each rank passes
   the block it holds to r + 1 and takes the one of r - 1.  From this local rule alone:

     - at step t rank r holds block (r - t) mod P; in unsigned arithmetic (r + P - t) mod P;
     - during the steps 0 .. P-1 a rank meets every block exactly once;
     - at every step the ranks hold all blocks, each once: none is doubled or lost;
     - a block that is passed on in every step but the last travels P - 1 times, and with P - 2
       transfers every rank would miss a block;
     - after P hops a block is home again, and not before (dK and dV of the backward pass).

   Ranks, blocks and steps are integers and mod is that of mathematics: -1 mod P = P - 1. *)

Require Import ZArith Lia List Permutation.
Import ListNotations.
Open Scope Z_scope.

Definition left_of (P r : Z) : Z := (r - 1) mod P.
Definition right_of (P r : Z) : Z := (r + 1) mod P.

(* The local rule: what rank r holds after one more transfer is what its left neighbour held. *)
Fixpoint held (P r : Z) (t : nat) : Z :=
  match t with O => r | S t' => held P (left_of P r) t' end.

(* The closed form. *)
Definition block_at (P r t : Z) : Z := (r - t) mod P.

(* The ranks, blocks or steps 0 .. P-1. *)
Definition all (P : Z) : list Z := map Z.of_nat (seq 0 (Z.to_nat P)).

Lemma in_all P x : In x (all P) <-> 0 <= x < P.
Proof.
  unfold all; rewrite in_map_iff; split.
  - intros (n & <- & i); apply in_seq in i; lia.
  - intros; exists (Z.to_nat x); rewrite in_seq; lia.
Qed.

Lemma all_distinct P : NoDup (all P).
Proof. apply FinFun.Injective_map_NoDup; [intros ? ?; apply Nat2Z.inj | apply seq_NoDup]. Qed.

Lemma block_at_range P r t : 0 < P -> 0 <= block_at P r t < P.
Proof. apply Z.mod_pos_bound. Qed.

Theorem held_is_block_at P r t : 0 <= r < P -> held P r t = block_at P r (Z.of_nat t).
Proof.
  revert r; induction t as [|t IH]; intros r range; simpl held.
  - unfold block_at; rewrite Z.sub_0_r, Z.mod_small; easy.
  - rewrite IH by (apply Z.mod_pos_bound; lia); unfold block_at, left_of.
    rewrite Zminus_mod_idemp_l; f_equal; lia.
Qed.

(* Unsigned integers of a machine: the difference never goes below zero. *)
Theorem block_at_unsigned P r t : 0 <= r < P -> 0 <= t <= P ->
  0 <= r + P - t /\ (r + P - t) mod P = block_at P r t.
Proof.
  split; [lia|]; unfold block_at; replace (r + P - t) with (r - t + 1 * P) by ring.
  apply Z.mod_add; lia.
Qed.

(* What rank r sends at step t is what rank r + 1 holds at step t + 1. *)
Theorem handover P r t : 0 < P -> block_at P (right_of P r) (t + 1) = block_at P r t.
Proof.
  intros; unfold block_at, right_of; rewrite Zminus_mod_idemp_l; f_equal; lia.
Qed.

(* Two residues are equal only if the numbers are, when these lie closer together than P. *)
Lemma same_residue P x y : 0 < P -> x mod P = y mod P -> - P < x - y < P -> x = y.
Proof.
  intros pos E near; pose proof (Z.div_mod x P ltac:(lia)); pose proof (Z.div_mod y P ltac:(lia)).
  assert (x - y = P * (x / P - y / P)) by nia; assert (x / P - y / P = 0) by nia; nia.
Qed.

Lemma map_distinct (f : Z -> Z) xs :
  (forall x y, In x xs -> In y xs -> f x = f y -> x = y) -> NoDup xs -> NoDup (map f xs).
Proof.
  intros injective; induction 1 as [|x rest fresh _ IH]; simpl; constructor.
  - rewrite in_map_iff; intros (y & E & i); apply injective in E; simpl; auto; congruence.
  - apply IH; intros y z iy iz; apply injective; simpl; auto.
Qed.

(* An injective map of 0 .. P-1 into itself permutes it. *)
Lemma injective_permutes P (f : Z -> Z) :
  (forall x, 0 <= x < P -> 0 <= f x < P) ->
  (forall x y, 0 <= x < P -> 0 <= y < P -> f x = f y -> x = y) ->
  Permutation (map f (all P)) (all P).
Proof.
  intros into injective; apply NoDup_Permutation_bis.
  - apply map_distinct; [|apply all_distinct].
    intros x y ix iy; apply in_all in ix, iy; now apply injective.
  - rewrite map_length; reflexivity.
  - intros y; rewrite in_map_iff; intros (x & <- & i); apply in_all, into, in_all, i.
Qed.

Theorem every_block_once P r : 0 < P -> Permutation (map (block_at P r) (all P)) (all P).
Proof.
  intros; apply injective_permutes; [intros; now apply block_at_range|].
  intros t t' ? ? E; apply same_residue in E; lia.
Qed.

Theorem every_step_permutes P t : 0 < P ->
  Permutation (map (fun r => block_at P r t) (all P)) (all P).
Proof.
  intros; apply injective_permutes; [intros; now apply block_at_range|].
  intros r r' ? ? E; apply same_residue in E; lia.
Qed.

(* Rank r meets block b at step (r - b) mod P and at no other: the formula is its own inverse. *)
Theorem meeting_step P r b t : 0 <= b < P -> 0 <= t < P ->
  (block_at P r t = b <-> t = block_at P r b).
Proof.
  intros; unfold block_at; split; intros E.
  - rewrite <- E, Zminus_mod_idemp_r; replace (r - (r - t)) with t by ring.
    symmetry; now apply Z.mod_small.
  - rewrite E, Zminus_mod_idemp_r; replace (r - (r - b)) with b by ring; now apply Z.mod_small.
Qed.

(* ---------- transfers ---------- *)

(* The listing transfers where t < P - 1. *)
Definition transfers (P : Z) : list Z := filter (fun t => t <? P - 1) (all P).

Theorem transfer_count P : 0 < P -> Z.of_nat (length (transfers P)) = P - 1.
Proof.
  intros pos; enough (E : Permutation (transfers P) (all (P - 1))).
  { rewrite (Permutation_length E); unfold all; rewrite map_length, seq_length; lia. }
  apply NoDup_Permutation; [apply NoDup_filter | |]; try apply all_distinct.
  intros t; unfold transfers; rewrite filter_In, !in_all, Z.ltb_lt; lia.
Qed.

(* Without the last transfer rank r never meets the block of its right neighbour. *)
Theorem fewer_transfers_miss_a_block P r t : 0 <= r < P -> 0 <= t < P - 1 ->
  block_at P r t <> right_of P r.
Proof. intros ? ? E; apply same_residue in E; lia. Qed.

Theorem home_after_P_hops P b : 0 <= b < P -> held P b (Z.to_nat P) = b.
Proof.
  intros; rewrite held_is_block_at, Z2Nat.id by lia; unfold block_at.
  replace (b - P) with (b + (-1) * P) by ring; rewrite Z.mod_add, Z.mod_small; lia.
Qed.

Theorem not_home_before P b t : 0 <= b < P -> (0 < t < Z.to_nat P)%nat -> held P b t <> b.
Proof.
  intros; rewrite held_is_block_at by lia; unfold block_at.
  rewrite <- (Z.mod_small b P) at 2 by lia; intros E; apply same_residue in E; lia.
Qed.
