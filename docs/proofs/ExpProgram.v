(* exp in double-double (oracle/truth/exp_dd-inl.hpp), written out operation by operation.

   In words.  The program over RN of ErrorFree.v, in four steps: reduction, polynomial, table,
   scaling. Then the statements of the three Gappa scripts, word by word, about the same steps.
   Gappa is told that the low word of a sum is the error of the sum; at the end it is proved that
   the program's TwoSum and FastTwoSum give just that. *)

Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core.
From ringproof Require Import Sums ErrorFree IntegerInterval ExpConstants.
Import Enclosure.
Open Scope R_scope.

(* ---------- the program ---------- *)

Definition inverse : R := 0x1.71547652b82fep+6.                (* 64 / ln 2 *)
Definition shift : R := 0x1.8p+52.

(* The low words of TwoSum and FastTwoSum are their errors: Gappa is told the latter. *)
Definition error_of_sum (a b : R) : R := a + b - RN (a + b).

(* Step 1: the integer k and what is left of x when k ln2/64 is taken off. *)
Section Reduction.
Variable low_word : R -> R -> R.                               (* of a sum *)
Variables xh xl : R.
Definition biased : R := RN (RN (xh * inverse) + shift).
Definition k : R := RN (biased - shift).
Definition t : R := RN (xh - k * C1).
Definition m : R := RN (k * - C2).
Definition w : R := RN (xl - k * C3).
Definition r0 : R := RN (t + m).
Definition l0 : R := RN (low_word t m + w).
Definition r : R := RN (r0 + l0).
Definition rl : R := low_word r0 l0.
End Reduction.

(* Step 2: the polynomial.  A Horner step adds the coefficient c + cl to (r + rl) (y + z). *)
Section Polynomial.
Variable low_word : R -> R -> R.
Variables r rl : R.

Definition horner (y : R * R) (c cl : R) : R * R :=
  let a := RN (r * fst y) in
  let b := RN (r * fst y - a) in
  let h := RN (rl * fst y + RN (r * snd y + b)) in
  (RN (c + a), RN (low_word c a + RN (h + cl))).

Definition tail6 : R :=
  let q10 := RN (0x1.ae64567f544e4p-26 * r + 0x1.27e4fb7789f5cp-22) in
  let q9 := RN (q10 * r + 0x1.71de3a556c734p-19) in
  let q8 := RN (q9 * r + 0x1.a01a01a01a01ap-16) in
  let q7 := RN (q8 * r + 0x1.a01a01a01a01ap-13) in
  RN (q7 * r + 0x1.6c16c16c16c17p-10).

Definition c5 : R := 0x1.1111111111111p-7.    Definition l5 : R := 0x1.1111111111111p-63.
Definition c4 : R := 0x1.5555555555555p-5.    Definition l4 : R := 0x1.5555555555555p-59.
Definition c3 : R := 0x1.5555555555555p-3.    Definition l3 : R := 0x1.5555555555555p-57.

Definition y5 : R * R := let a := RN (r * tail6) in (RN (c5 + a), RN (low_word c5 a + l5)).
Definition y4 : R * R := horner y5 c4 l4.
Definition y3 : R * R := horner y4 c3 l3.
Definition y2 : R * R := horner y3 (/ 2) 0.
Definition y1 : R * R := horner y2 1 0.
Definition y0 : R * R := horner y1 1 0.

(* Step 3: times the table entry th + tl. *)
Variables th tl : R.
Definition p : R := RN (th * fst y0).
Definition q : R := RN (tl * fst y0 + RN (th * snd y0 + RN (th * fst y0 - p))).
End Polynomial.

(* Step 4: the pair is made proper and scaled by 2^e, e = floor(k / 64). *)
Definition exp_dd (th tl : R) (e : Z) (xh xl : R) : R * R :=
  let rh := r two_sum_low xh xl in let rl := rl two_sum_low xh xl in
  let p := p fast_two_sum_low rh rl th in let q := q fast_two_sum_low rh rl th tl in
  (RN (RN (p + q) * power e), RN (fast_two_sum_low p q * power e)).

(* ---------- what Gappa proves ---------- *)

Definition ln2_64 : R := ln 2 / 64.

Definition exp_reduction_g : Prop := forall xh xl, binary64 xh -> binary64 xl ->
  Rabs xl <= power (-53) * Rabs xh -> power (-8) <= Rabs xh <= 700 ->
  let r := r error_of_sum xh xl in let rl := rl error_of_sum xh xl in
  Rabs ((r + rl - (xh + xl - k xh * ln2_64)) / xh) <= 0x1.2p-105
  /\ Rabs r <= 0.00542 /\ Rabs rl <= power (-60).

Definition exp_reduction_near_zero_g : Prop := forall xh, binary64 xh -> Rabs xh <= power (-8) ->
  k xh = 0.

Definition exp_polynomial_g : Prop := forall r rl th tl T, binary64 r -> binary64 rl ->
  binary64 th -> binary64 tl -> Rabs r <= 0.00542 -> Rabs rl <= power (-60) ->
  1 <= T <= 2 -> 1 <= th <= 2 -> Rabs tl <= power (-53) -> Rabs (th + tl - T) <= power (-106) ->
  let E := error_of_sum in
  Rabs (fst (y0 E r rl) + snd (y0 E r rl) - taylor (r + rl)) <= power (-105)
  /\ Rabs (p E r rl th + q E r rl th tl - T * taylor (r + rl)) <= power (-102)
  /\ Rabs (RN (r * tail6 r)) <= power (-7) /\ Rabs (RN (r * fst (y5 E r))) <= power (-5)
  /\ Rabs (RN (r * fst (y4 E r rl))) <= power (-3) /\ Rabs (RN (r * fst (y3 E r rl))) <= power (-1)
  /\ Rabs (RN (r * fst (y2 E r rl))) <= 1 /\ Rabs (RN (r * fst (y1 E r rl))) <= 1
  /\ 0.99 <= p E r rl th <= 2.02 /\ Rabs (q E r rl th tl) <= power (-50).

(* ---------- the low words are the errors ---------- *)

Lemma two_sum_low_is_error a b : binary64 a -> binary64 b -> two_sum_low a b = error_of_sum a b.
Proof. intros Fa Fb; pose proof (two_sum_exact a b Fa Fb); unfold error_of_sum; lra. Qed.

Lemma fast_low_is_error a b : binary64 a -> binary64 b -> Rabs b <= Rabs a ->
  fast_two_sum_low a b = error_of_sum a b.
Proof. intros Fa Fb le; pose proof (fast_two_sum_exact a b Fa Fb le); unfold error_of_sum; lra. Qed.

Lemma reduction_low_words xh xl : r two_sum_low xh xl = r error_of_sum xh xl
  /\ rl two_sum_low xh xl = rl error_of_sum xh xl.
Proof.
  assert (E : l0 two_sum_low xh xl = l0 error_of_sum xh xl)
    by (unfold l0; rewrite two_sum_low_is_error by apply RN_binary64; reflexivity).
  unfold r, rl; rewrite E; split; [reflexivity | apply two_sum_low_is_error; apply RN_binary64].
Qed.

(* A constant of 53 bits that is written in hexadecimal. *)
Lemma constant_binary64 x n e : (Z.abs n < 2 ^ 53)%Z -> (-1074 <= e)%Z ->
  Rabs (x - IZR n * power e) <= 0 -> binary64 x.
Proof.
  intros Hn He E; pose proof (Rabs_pos (x - IZR n * power e)).
  assert (Z : Rabs (x - IZR n * power e) = 0) by lra.
  replace x with (F2R (Float radix2 n e)).
  - apply generic_format_FLT; exists (Float radix2 n e); easy.
  - unfold F2R; cbn [Fnum Fexp]; destruct (Req_dec (x - IZR n * power e) 0) as [D | D]; [lra|].
    now apply Rabs_no_R0 in D.
Qed.

Ltac constant n e :=
  apply (constant_binary64 _ n e); [lia | lia | unfold c5, c4, c3; simpl;
      interval with (i_prec 120)].

Lemma coefficients_binary64 : binary64 c5 /\ binary64 c4 /\ binary64 c3 /\ binary64 (/ 2) /\
    binary64 1.
Proof.
  repeat split; [constant 0x11111111111111%Z (-59)%Z | constant 0x15555555555555%Z (-57)%Z |
    constant 0x15555555555555%Z (-55)%Z | constant 1%Z (-1)%Z | constant 1%Z 0%Z].
Qed.

Lemma horner_low_words r rl y c cl : binary64 c -> Rabs (RN (r * fst y)) <= Rabs c ->
  horner fast_two_sum_low r rl y c cl = horner error_of_sum r rl y c cl.
Proof.
  intros Fc le; unfold horner; rewrite fast_low_is_error; auto using RN_binary64.
Qed.

Lemma polynomial_low_words r rl : let E := error_of_sum in
  Rabs (RN (r * tail6 r)) <= power (-7) -> Rabs (RN (r * fst (y5 E r))) <= power (-5) ->
  Rabs (RN (r * fst (y4 E r rl))) <= power (-3) -> Rabs (RN (r * fst (y3 E r rl))) <= power (-1) ->
  Rabs (RN (r * fst (y2 E r rl))) <= 1 -> Rabs (RN (r * fst (y1 E r rl))) <= 1 ->
  y0 fast_two_sum_low r rl = y0 E r rl.
Proof.
  intros E A5 A4 A3 A2 A1 A0; destruct coefficients_binary64 as (F5 & F4 & F3 & F2 & F1).
  assert (at_least : power (-7) <= Rabs c5 /\ power (-5) <= Rabs c4 /\ power (-3) <= Rabs c3
                     /\ power (-1) <= Rabs (/ 2) /\ 1 <= Rabs 1)
    by (unfold c5, c4, c3; simpl; repeat split; interval with (i_prec 60)).
  destruct at_least as (G5 & G4 & G3 & G2 & G1).
  assert (E5 : y5 fast_two_sum_low r = y5 E r)
    by (unfold y5; rewrite fast_low_is_error; auto using RN_binary64; lra).
  assert (E4 : y4 fast_two_sum_low r rl = y4 E r rl)
    by (unfold y4; rewrite E5; apply horner_low_words; trivial; lra).
  assert (E3 : y3 fast_two_sum_low r rl = y3 E r rl)
    by (unfold y3; rewrite E4; apply horner_low_words; trivial; lra).
  assert (E2 : y2 fast_two_sum_low r rl = y2 E r rl)
    by (unfold y2; rewrite E3; apply horner_low_words; trivial; lra).
  assert (E1 : y1 fast_two_sum_low r rl = y1 E r rl)
    by (unfold y1; rewrite E2; apply horner_low_words; trivial; lra).
  unfold y0; rewrite E1; apply horner_low_words; trivial; lra.
Qed.
