(* The document's worked example: every printed figure, and what averaging would have given.

   In words.  Block A has scores 1, 2 and values 1, 2; block B has scores 3, 0 and values 3, 4.
   The recurrence gives l = 1.368 then 1.553, o = 2.368 then 4.070, alpha = 0 then 0.368, and
   out = 2.621, which is the softmax of all four keys: each figure is the exact real number, rounded
   to three decimals.  The average of the two normalised blocks is 2.389. *)

Require Import Reals Lra List.
From ringproof Require Import Sums OnlineSoftmax Partials IntegerInterval.
Import ListNotations Enclosure.
Open Scope R_scope.

Definition block_A : list key := [Key 1 1; Key 2 2].
Definition block_B : list key := [Key 3 3; Key 0 4].

(* x is printed as the decimal d with three digits. *)
Definition printed_as (x d : R) : Prop := Rabs (x - d) < 5 / 10000.

(* The two states, by the recurrence with the running maximum. *)
Definition after_A : state := absorb empty block_A.
Definition after_B : state := absorb after_A block_B.

Lemma after_A_unfolds : after_A = absorb_at (Some 2) empty block_A.
Proof.
  unfold after_A, absorb; cbn [m empty max_score block_A max_reference score].
  rewrite Rmax_right by lra; reflexivity.
Qed.

Lemma after_B_unfolds : after_B = absorb_at (Some 3) (absorb_at (Some 2) empty block_A) block_B.
Proof.
  unfold after_B; rewrite after_A_unfolds; unfold absorb.
  cbn [m absorb_at plus rebase max_score block_B max_reference score].
  rewrite (Rmax_left 3 0), Rmax_right by lra; reflexivity.
Qed.

(* Writes a figure out as one expression in exp and encloses it. *)
Ltac enclose :=
  rewrite ?after_B_unfolds, ?after_A_unfolds;
  cbv [printed_as out average softmax_mean absorb_at plus rebase state_at empty factor weight
       sum app block_A block_B m l o score value];
  interval with (i_prec 40).

(* Step A *)
Theorem step_A : factor (m empty) (Some 2) = 0 /\ m after_A = Some 2
  /\ printed_as (l after_A) 1.368 /\ printed_as (o after_A) 2.368.
Proof. repeat split; [now rewrite after_A_unfolds | enclose | enclose]. Qed.

Theorem step_A_weights :
  printed_as (weight (Some 2) (Key 1 1)) 0.368 /\ weight (Some 2) (Key 2 2) = 1.
Proof. split; [enclose | apply factor_self]. Qed.

(* Step B *)
Theorem step_B : printed_as (factor (m after_A) (Some 3)) 0.368 /\ m after_B = Some 3
  /\ printed_as (l after_B) 1.553 /\ printed_as (o after_B) 4.070.
Proof.
  repeat split; [rewrite after_A_unfolds;
      enclose | now rewrite after_B_unfolds | enclose | enclose].
Qed.

Theorem step_B_weights :
  weight (Some 3) (Key 3 3) = 1 /\ printed_as (weight (Some 3) (Key 0 4)) 0.050.
Proof. split; [apply factor_self | enclose]. Qed.

Theorem final_answer : printed_as (out after_B) 2.621 /\ out after_B = softmax_mean (block_A ++
    block_B).
Proof. split; [enclose | apply (run_is_softmax [block_A; block_B]); discriminate]. Qed.

(* The document's own rounded factors give another last digit. *)
Theorem rounded_factors : printed_as (0.368 * 2.368 + (1.000 * 3 + 0.050 * 4)) 4.071.
Proof. enclose. Qed.

(* ---------- normalising each block and averaging ---------- *)

Theorem average_printed : printed_as (average block_A block_B) 2.389.
Proof. enclose. Qed.

Theorem average_is_wrong : average block_A block_B + 0.23 < softmax_mean (block_A ++ block_B).
Proof. apply Rminus_gt_0_lt; enclose. Qed.
