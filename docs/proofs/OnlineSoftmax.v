(* The online-softmax recurrence is exact, and its states form a commutative monoid.

   In words.  A query keeps a state (m, l, o): a reference m, and with respect to it the sums

       l = sum_j exp(s_j - m),     o = sum_j exp(s_j - m) v_j     over the keys met so far.

   1. Any reference gives the same quotient o / l: the softmax-weighted mean of the values.
   2. Absorbing a block at any new reference keeps the sums right; so does merging two states.
   3. With the running maximum as reference, the state after any blocks, in any order and grouping,
      is the state of all keys taken at once.  Merging is commutative and associative for all
      states, and the empty state (-infinity, 0, 0) is neutral on both sides.

   This is real arithmetic: rounding is the subject of OutputBound.v.  A key that is not visible is
   not in the list, and a fully masked block is the empty list.  One column of values is enough: the
   sums of the others have the same shape. *)

Require Import Reals Lra List Permutation.
From ringproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Record key := Key { score : R; value : R }.

(* A reference is a real number or -infinity, which is None. *)
Definition reference := option R.

(* exp(from - to), the factor between two references; 0 from -infinity, never (-inf) - (-inf). *)
Definition factor (from to : reference) : R :=
  match from, to with Some a, Some b => exp (a - b) | _, _ => 0 end.

Definition weight (m : reference) (k : key) : R := factor (Some (score k)) m.

Record state := State { m : reference; l : R; o : R }.

Definition empty : state := State None 0 0.
Definition out (s : state) : R := o s / l s.

(* The state of a list of keys, summed directly at the reference r. *)
Definition state_at (r : reference) (keys : list key) : state :=
  State r (sum (weight r) keys) (sum (fun k => weight r k * value k) keys).

Definition softmax_mean (keys : list key) : R :=
  sum (fun k => exp (score k) * value k) keys / sum (fun k => exp (score k)) keys.

(* The steps of the recurrence: bring a state to another reference, add two of the same reference.
   *)
Definition rebase (r : reference) (s : state) : state :=
  State r (factor (m s) r * l s) (factor (m s) r * o s).
Definition plus (s t : state) : state := State (m s) (l s + l t) (o s + o t).

Definition absorb_at (r : reference) (s : state) (block : list key) : state :=
  plus (rebase r s) (state_at r block).
Definition merge_at (r : reference) (s t : state) : state := plus (rebase r s) (rebase r t).

(* ---------- any reference ---------- *)

(* A reference may be -infinity only where there is no key. *)
Definition covers (r : reference) (keys : list key) : Prop := r = None -> keys = [].

Lemma covers_app r a b : covers r (a ++ b) -> covers r a /\ covers r b.
Proof. intros c; split; intros E; apply c, app_eq_nil in E; tauto. Qed.

Lemma factor_chain a (b : R) c : factor a (Some b) * factor (Some b) c = factor a c.
Proof. destruct a, c; simpl; try ring; rewrite <- exp_plus; f_equal; ring. Qed.

Lemma factor_self (a : R) : factor (Some a) (Some a) = 1.
Proof. simpl; rewrite Rminus_eq_0; apply exp_0. Qed.

Lemma state_at_app r a b : state_at r (a ++ b) = plus (state_at r a) (state_at r b).
Proof. unfold state_at, plus; simpl; rewrite !sum_app; reflexivity. Qed.

Theorem rebase_correct r r' keys : covers r keys ->
  rebase r' (state_at r keys) = state_at r' keys.
Proof.
  unfold rebase, state_at; cbn [m l o]; intros c; f_equal; rewrite <- sum_scale; apply sum_eq;
    intros k i; (destruct r as [r|]; [|now rewrite c in i]);
    unfold weight; rewrite <- (factor_chain (Some (score k)) r r'); ring.
Qed.

Theorem absorb_correct r r' keys block : covers r keys ->
  absorb_at r' (state_at r keys) block = state_at r' (keys ++ block).
Proof.
  intros; unfold absorb_at; rewrite rebase_correct, state_at_app by assumption; reflexivity.
Qed.

Theorem merge_correct ra rb r a b : covers ra a -> covers rb b ->
  merge_at r (state_at ra a) (state_at rb b) = state_at r (a ++ b).
Proof.
  intros; unfold merge_at; rewrite !rebase_correct, state_at_app by assumption; reflexivity.
Qed.

Lemma l_positive (r : R) keys : keys <> [] -> 0 < l (state_at (Some r) keys).
Proof. intros; apply sum_positive; [assumption | intros; apply exp_pos]. Qed.

(* Whatever the reference, the quotient is the softmax: shift invariance. *)
Theorem out_is_softmax (r : R) keys : keys <> [] -> out (state_at (Some r) keys) = softmax_mean
    keys.
Proof.
  intros some; pose proof (l_positive 0 keys some) as P.
  transitivity (out (state_at (Some 0) keys)).
  - rewrite <- (rebase_correct (Some 0) (Some r) keys) by discriminate.
    unfold out, rebase, state_at in *; cbn [m l o factor] in *; pose proof (exp_pos (0 - r)).
    field; split; lra.
  - unfold out, softmax_mean, state_at, weight; cbn [l o factor].
    f_equal; apply sum_eq; intros; rewrite Rminus_0_r; reflexivity.
Qed.

(* Stale, too small, too large: a program may choose every reference as it likes. *)
Theorem any_references (steps : list (R * list key)) (r : R) (first : list key) :
  first ++ concat (map snd steps) <> [] ->
  out (fold_left (fun s step => absorb_at (Some (fst step)) s (snd step)) steps
                 (absorb_at (Some r) empty first))
  = softmax_mean (first ++ concat (map snd steps)).
Proof.
  change empty with (state_at None []); rewrite absorb_correct by (intros _; reflexivity).
  simpl app at 2; revert r first; induction steps as [|[r' block] rest IH]; intros r first; simpl.
  - rewrite app_nil_r; apply out_is_softmax.
  - rewrite app_assoc, absorb_correct by discriminate; apply IH.
Qed.

(* ---------- the running maximum ---------- *)

Definition max_reference (a b : reference) : reference :=
  match a, b with Some x, Some y => Some (Rmax x y) | None, _ => b | _, None => a end.

Fixpoint max_score (keys : list key) : reference :=
  match keys with [] => None | k :: rest => max_reference (Some (score k)) (max_score rest) end.

Definition absorb (s : state) (block : list key) : state :=
  absorb_at (max_reference (m s) (max_score block)) s block.
Definition merge (s t : state) : state := merge_at (max_reference (m s) (m t)) s t.

(* All blocks, one after the other, from the empty state; and all keys at once. *)
Definition run (blocks : list (list key)) : state := fold_left absorb blocks empty.
Definition dense (keys : list key) : state := state_at (max_score keys) keys.

Lemma max_reference_comm a b : max_reference a b = max_reference b a.
Proof. destruct a, b; simpl; try reflexivity; f_equal; apply Rmax_comm. Qed.

Lemma max_reference_assoc a b c :
  max_reference a (max_reference b c) = max_reference (max_reference a b) c.
Proof. destruct a, b, c; simpl; try reflexivity; f_equal; apply Rmax_assoc. Qed.

Lemma max_reference_twice a b : max_reference a (max_reference a b) = max_reference a b.
Proof.
  destruct a, b; simpl; try reflexivity; f_equal; unfold Rmax; repeat destruct Rle_dec; lra.
Qed.

Lemma max_score_app a b : max_score (a ++ b) = max_reference (max_score a) (max_score b).
Proof. induction a; cbn [max_score app]; [|rewrite IHa, max_reference_assoc]; reflexivity. Qed.

Lemma max_score_permutation a b : Permutation a b -> max_score a = max_score b.
Proof.
  induction 1; cbn [max_score]; try congruence.
  rewrite !max_reference_assoc; f_equal; apply max_reference_comm.
Qed.

Lemma max_score_covers keys : covers (max_score keys) keys.
Proof.
  destruct keys as [|k rest]; [easy|]; intros E; simpl in E; now destruct (max_score rest).
Qed.

Lemma dense_permutation a b : Permutation a b -> dense a = dense b.
Proof.
  intros p; unfold dense, state_at; rewrite (max_score_permutation a b p).
  f_equal; apply sum_permutation, p.
Qed.

Theorem absorb_dense keys block : absorb (dense keys) block = dense (keys ++ block).
Proof.
  unfold absorb, dense; cbn [m state_at]; rewrite absorb_correct by apply max_score_covers.
  now rewrite max_score_app.
Qed.

Theorem merge_dense a b : merge (dense a) (dense b) = dense (a ++ b).
Proof.
  unfold merge, dense; cbn [m state_at]; rewrite merge_correct by apply max_score_covers.
  now rewrite max_score_app.
Qed.

(* One recurrence at every level: a tile in a rank, a block in a ring. *)
Corollary absorb_is_merge keys block : absorb (dense keys) block = merge (dense keys) (dense block).
Proof. rewrite absorb_dense, merge_dense; reflexivity. Qed.

Lemma fold_absorb blocks keys : fold_left absorb blocks (dense keys) = dense (keys ++ concat
    blocks).
Proof.
  revert keys; induction blocks as [|b rest IH]; intros keys; simpl; [now rewrite app_nil_r|].
  rewrite absorb_dense, IH, app_assoc; reflexivity.
Qed.

(* After every prefix of the blocks the state is the dense state of the keys met so far. *)
Theorem run_is_dense blocks : run blocks = dense (concat blocks).
Proof. apply (fold_absorb blocks []). Qed.

Theorem dense_is_softmax keys : keys <> [] -> out (dense keys) = softmax_mean keys.
Proof.
  intros some; unfold dense; destruct (max_score keys) as [r|] eqn:E; [now apply out_is_softmax|].
  now apply max_score_covers in E.
Qed.

Corollary run_is_softmax blocks : concat blocks <> [] ->
  out (run blocks) = softmax_mean (concat blocks).
Proof. rewrite run_is_dense; apply dense_is_softmax. Qed.

(* Not only the answer: the whole state is the same in every order and grouping. *)
Theorem run_ignores_order_and_grouping blocks blocks' :
  Permutation (concat blocks) (concat blocks') -> run blocks = run blocks'.
Proof. rewrite !run_is_dense; apply dense_permutation. Qed.

(* ---------- the monoid, for all states ---------- *)

Theorem merge_commutative s t : merge s t = merge t s.
Proof. unfold merge, merge_at, plus; simpl; rewrite max_reference_comm; f_equal; ring. Qed.

(* Going to r through an intermediate maximum is the same as going there at once. *)
Lemma rebase_through r other s : rebase r (rebase (max_reference (m s) other) s) = rebase r s.
Proof.
  enough (E : factor (m s) (max_reference (m s) other) * factor (max_reference (m s) other) r
              = factor (m s) r) by (unfold rebase; cbn [m l o]; rewrite <- E; f_equal; ring).
  destruct (m s) as [a|]; [|simpl; ring]; destruct other; apply factor_chain.
Qed.

Lemma rebase_plus r s t : m s = m t -> rebase r (plus s t) = plus (rebase r s) (rebase r t).
Proof. intros E; unfold rebase, plus; cbn [m l o]; rewrite E; f_equal; ring. Qed.

Lemma plus_assoc s t u : plus s (plus t u) = plus (plus s t) u.
Proof. unfold plus; cbn [m l o]; f_equal; ring. Qed.

Theorem merge_associative s t u : merge s (merge t u) = merge (merge s t) u.
Proof.
  unfold merge, merge_at; cbn [m plus rebase];
      rewrite max_reference_assoc, !rebase_plus by reflexivity.
  rewrite (rebase_through _ (m t) s), (rebase_through _ (m u) t).
  rewrite (max_reference_comm (m t) (m u)), (rebase_through _ (m t) u).
  rewrite (max_reference_comm (m s) (m t)), (rebase_through _ (m s) t).
  apply plus_assoc.
Qed.

(* A state at -infinity has absorbed nothing; all states that a program reaches are of this kind. *)
Definition well_formed (s : state) : Prop := m s = None -> l s = 0 /\ o s = 0.

Theorem empty_neutral s : well_formed s -> merge empty s = s /\ merge s empty = s.
Proof.
  intros wf; rewrite (merge_commutative s empty); enough (merge empty s = s) by tauto.
  unfold merge, merge_at, rebase, plus; destruct s as [[a|] l0 o0]; cbn [m l o empty max_reference].
  - rewrite factor_self; cbn [factor]; f_equal; ring.
  - destruct wf as (E & E'); [reflexivity|]; simpl in *; subst; f_equal; ring.
Qed.

Theorem dense_well_formed keys : well_formed (dense keys).
Proof. intros E; apply max_score_covers in E; subst; split; reflexivity. Qed.

Theorem merge_well_formed s t : well_formed s -> well_formed t -> well_formed (merge s t).
Proof.
  unfold well_formed, merge; destruct s as [[|] ? ?], t as [[|] ? ?]; cbn; intros; try discriminate.
  split; ring.
Qed.
