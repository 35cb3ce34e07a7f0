(* Ring attention is exact: the schedule of RingSchedule.v, the recurrence of OnlineSoftmax.v.

   In words.  One query of rank r.  Let shard b be the keys of block b that it may see, in whatever
   layout and under whatever mask: also none.  After the P steps of the listing, in which rank r
   absorbs what its left neighbour hands it, its state is the dense state of all keys. *)

Require Import ZArith Lia List Permutation.
From ringproof Require Import OnlineSoftmax RingSchedule.
Import ListNotations.
Open Scope Z_scope.

Section Ring.

Variable shard : Z -> list key.

(* The blocks in the order in which rank r meets them. *)
Definition met (P r : Z) : list (list key) := map (fun t => shard (held P r (Z.to_nat t))) (all P).

Lemma met_permutes P r : 0 <= r < P ->
  Permutation (concat (met P r)) (concat (map shard (all P))).
Proof.
  intros range; assert (E : met P r = map shard (map (block_at P r) (all P))).
  { unfold met; rewrite map_map; apply map_ext_in; intros t i; apply in_all in i.
    rewrite held_is_block_at, Z2Nat.id; easy. }
  rewrite E, <- !flat_map_concat_map; apply Permutation_flat_map, every_block_once; lia.
Qed.

Theorem ring_attention_is_exact P r : 0 <= r < P ->
  run (met P r) = dense (concat (map shard (all P))).
Proof. intros; rewrite run_is_dense; apply dense_permutation, met_permutes; assumption. Qed.

(* The same query on two ranks ends with the same state. *)
Corollary ranks_agree P r r' : 0 <= r < P -> 0 <= r' < P -> run (met P r) = run (met P r').
Proof. intros; rewrite !ring_attention_is_exact; trivial. Qed.

Corollary ring_attention_is_softmax P r : 0 <= r < P -> concat (map shard (all P)) <> [] ->
  out (run (met P r)) = softmax_mean (concat (map shard (all P))).
Proof.
  intros; rewrite ring_attention_is_exact by assumption; apply dense_is_softmax; assumption.
Qed.

End Ring.
