(* Merges of normalised partials by their log-sum-exp, (18) to (20b) of the contract: what form of
   theorem T1 the result has.

   In words.  Partial r comes as an answer O_r and a log-sum-exp L'_r.  A sequential merge keeps a
   running pair (out, L).  With L_t = ln(e^L + e^{L'}) + d_t, d_t the error of the t-th logaddexp,

     out_t = out e^{(L - L_t) e^nu1} e^eps1 + O e^{(L' - L_t) e^nu2} e^eps2

   where |nu| <= N are roundings of the differences and |eps| <= E all factors of a merge.  After
   all

     out = sum_r O_r e^{L'_r + a_r} / sum_r e^{L'_r + b_r},
     |a_r| <= expm1(N) (L - L'_r + 2 Delta_r) + (number of merges that r passes) E,
     |b_r| <= Delta_r = sum of |d_t| over the merges that r passes:

   the running L divides out of the numerator, whatever it is, and its errors d_t stay in the
   denominator alone: they do not cancel, and grow with the number of merges.

   A merge by sigmoids is out + sg (O - out) with sg = sigmoid of the computed difference L' - L +
   x_t; L_t = ln(e^L + e^{L' + x_t}) + h_t.  That is a convex combination, exactly:

     out = sum_r O_r e^{L'_r + c_r} / sum_r e^{L'_r + c_r},   |c_r| <= |x_r| + sum of |h_t|,

   so these are shared errors.  What each step adds relative to sg |O - out| adds up to no more than
   once that, times the spread of the answers: the weights of all steps sum to at most 1 (20b). *)

Require Import Reals Lra Lia List.
From ringproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Record part := Part { O : R; L' : R; nu1 : R; eps1 : R; nu2 : R; eps2 : R; d : R }.

Definition logaddexp (x y : R) : R := ln (exp x + exp y).

Lemma exp_logaddexp x y : exp (logaddexp x y) = exp x + exp y.
Proof. pose proof (exp_pos x); pose proof (exp_pos y); apply exp_ln; lra. Qed.

Lemma logaddexp_above x y : x <= logaddexp x y /\ y <= logaddexp x y.
Proof.
  pose proof (exp_pos x); pose proof (exp_pos y).
  rewrite <- (ln_exp x) at 1; rewrite <- (ln_exp y) at 2; split; apply ln_le; auto using exp_pos;
      lra.
Qed.

Section Sequential.

Variables (N E : R).
Hypothesis N_nonneg : 0 <= N.

Definition legal (x : part) : Prop :=
  Rabs (nu1 x) <= N /\ Rabs (nu2 x) <= N /\ Rabs (eps1 x) <= E /\ Rabs (eps2 x) <= E.

(* ---------- the program ---------- *)

Definition next_L (L : R) (x : part) : R := logaddexp L (L' x) + d x.
Definition next_out (out L : R) (x : part) : R :=
  out * (exp ((L - next_L L x) * exp (nu1 x)) * exp (eps1 x))
  + O x * (exp ((L' x - next_L L x) * exp (nu2 x)) * exp (eps2 x)).

Fixpoint last_L (L : R) (parts : list part) : R :=
  match parts with [] => L | x :: rest => last_L (next_L L x) rest end.
Fixpoint last_out (out L : R) (parts : list part) : R :=
  match parts with [] => out | x :: rest => last_out (next_out out L x) (next_L L x) rest end.

(* ---------- the errors of a partial on its way ---------- *)

(* Of what is already merged into (out, L): in numerator and denominator. *)
Fixpoint way_a (L : R) (parts : list part) : R :=
  match parts with
  | [] => 0
  | x :: rest => expm1 (nu1 x) * (L - next_L L x) + eps1 x + way_a (next_L L x) rest
  end.
Definition way_b (parts : list part) : R := sum d parts.
Definition Delta (parts : list part) : R := sum (fun x => Rabs (d x)) parts.

Record merged := Merged { answer : R; log : R; a : R; b : R; A : R; B : R }.

Fixpoint unrolled (L : R) (parts : list part) : list merged :=
  match parts with
  | [] => []
  | x :: rest =>
    let L1 := next_L L x in
    Merged (O x) (L' x) (expm1 (nu2 x) * (L' x - L1) + eps2 x + way_a L1 rest) (d x + way_b rest)
      (expm1 N * (last_L L1 rest - L' x + 2 * Delta (x :: rest)) + (1 + INR (length rest)) * E)
      (Delta (x :: rest))
    :: unrolled L1 rest
  end.

Lemma numerator_unrolls out L parts : last_out out L parts * exp (last_L L parts)
  = out * exp (L + way_a L parts) + sum (fun x => answer x * exp (log x + a x)) (unrolled L parts).
Proof.
  revert out L; induction parts as [|x rest IH]; intros out L;
    cbn [last_out last_L way_a unrolled sum answer log a]; [rewrite !Rplus_0_r; reflexivity|].
  rewrite IH; unfold next_out; set (L1 := next_L L x).
  replace (L + (expm1 (nu1 x) * (L - L1) + eps1 x + way_a L1 rest)) with
    (L1 + way_a L1 rest + (L - L1) * exp (nu1 x) + eps1 x) by (unfold expm1; ring).
  replace (L' x + (expm1 (nu2 x) * (L' x - L1) + eps2 x + way_a L1 rest)) with
    (L1 + way_a L1 rest + (L' x - L1) * exp (nu2 x) + eps2 x) by (unfold expm1; ring).
  rewrite !(exp_plus (L1 + way_a L1 rest + _)), !(exp_plus (L1 + way_a L1 rest)); ring.
Qed.

Lemma denominator_unrolls L parts : exp (last_L L parts)
  = exp (L + way_b parts) + sum (fun x => exp (log x + b x)) (unrolled L parts).
Proof.
  revert L; induction parts as [|x rest IH]; intros L;
    cbn [last_L unrolled sum log b]; [unfold way_b; simpl; rewrite !Rplus_0_r; reflexivity|].
  rewrite IH; change (way_b (x :: rest)) with (d x + way_b rest); unfold next_L.
  rewrite !exp_plus, exp_logaddexp; ring.
Qed.

(* L never falls by more than the error of its logaddexp. *)
Lemma step_up L x : Rabs (L - next_L L x) <= next_L L x - L + 2 * Rabs (d x)
  /\ Rabs (L' x - next_L L x) <= next_L L x - L' x + 2 * Rabs (d x).
Proof.
  unfold next_L; destruct (logaddexp_above L (L' x));
      pose proof (Rabs_bounds _ _ (Rle_refl (Rabs (d x)))).
  split; apply Rabs_le; lra.
Qed.

Lemma way_a_small L parts : Forall legal parts ->
  Rabs (way_a L parts) <= expm1 N * (last_L L parts - L + 2 * Delta parts) + INR (length parts) * E.
Proof.
  intros ok; revert L; induction ok as [|x rest (H1 & _ & H2 & _) _ IH]; intros L.
  - unfold Delta; simpl; rewrite Rabs_R0; lra.
  - cbn [way_a last_L length]; set (L1 := next_L L x); rewrite S_INR.
    change (Delta (x :: rest)) with (Rabs (d x) + Delta rest).
    replace (expm1 N * (last_L L1 rest - L + 2 * (Rabs (d x) + Delta rest)) + (INR (length rest) +
        1) * E)
      with (expm1 N * (L1 - L + 2 * Rabs (d x)) + E
            + (expm1 N * (last_L L1 rest - L1 + 2 * Delta rest) + INR (length rest) * E)) by ring.
    apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_mult_le|] | apply IH]; trivial;
      [apply Rabs_expm1_le, H1 | apply step_up].
Qed.

Lemma way_b_small parts : Rabs (way_b parts) <= Delta parts.
Proof. apply sum_abs. Qed.

(* The budgets of every partial that is merged in. *)
Theorem sequential_budgets L parts : Forall legal parts ->
  Forall (fun x => Rabs (a x) <= A x /\ Rabs (b x) <= B x) (unrolled L parts).
Proof.
  intros ok; revert L; induction ok as [|x rest (_ & H1 & _ & H2) ok IH]; intros L; constructor;
    [|apply IH]; cbn [a b A B]; set (L1 := next_L L x).
  change (Delta (x :: rest)) with (Rabs (d x) + Delta rest); split.
  - replace (expm1 N * (last_L L1 rest - L' x + 2 * (Rabs (d x) + Delta rest))
             + (1 + INR (length rest)) * E)
      with (expm1 N * (L1 - L' x + 2 * Rabs (d x)) + E
            + (expm1 N * (last_L L1 rest - L1 + 2 * Delta rest) + INR (length rest) * E)) by ring.
    apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rabs_mult_le|] | apply way_a_small]; trivial;
      [apply Rabs_expm1_le, H1 | apply step_up].
  - apply Rabs_plus_le; [apply Rle_refl | apply way_b_small].
Qed.

(* (19): the form of T1, and the budgets of the first partial. *)
Theorem sequential_merge out L parts : Forall legal parts ->
  last_out out L parts
  = (out * exp (L + way_a L parts) + sum (fun x => answer x * exp (log x + a x)) (unrolled L parts))
    / (exp (L + way_b parts) + sum (fun x => exp (log x + b x)) (unrolled L parts))
  /\ Rabs (way_a L parts) <= expm1 N * (last_L L parts - L + 2 * Delta parts) + INR (length parts)
      * E
  /\ Rabs (way_b parts) <= Delta parts.
Proof.
  intros ok; split; [|split; [now apply way_a_small | apply way_b_small]].
  rewrite <- numerator_unrolls, <- denominator_unrolls; pose proof (exp_pos (last_L L parts));
      field; lra.
Qed.

End Sequential.

(* ---------- all at once, (20) ---------- *)

(* L = ln sum_r e^{L'_r} + d; the answer is sum_r O_r exp of the computed L'_r - L. *)
Theorem merge_once (parts : list part) (d : R) : parts <> [] ->
  let L := ln (sum (fun x => exp (L' x)) parts) + d in
  sum (fun x => O x * (exp ((L' x - L) * exp (nu2 x)) * exp (eps2 x))) parts
  = sum (fun x => O x * exp (L' x + (expm1 (nu2 x) * (L' x - L) + eps2 x))) parts
    / sum (fun x => exp (L' x + d)) parts.
Proof.
  intros some L; set (W := sum (fun x => exp (L' x)) parts).
  assert (PW : 0 < W) by (apply sum_positive; [exact some | intros; apply exp_pos]).
  replace (sum (fun x => exp (L' x + d)) parts) with (exp L).
  2: { unfold L; rewrite exp_plus, exp_ln by exact PW; rewrite Rmult_comm; unfold W.
       rewrite <- sum_scale; apply sum_eq; intros; rewrite exp_plus; ring. }
  pose proof (exp_pos L); apply (Rmult_eq_reg_r (exp L)); [|lra].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_comm, <- sum_scale by lra.
  apply sum_eq; intros x _.
  replace (L' x + (expm1 (nu2 x) * (L' x - L) + eps2 x)) with
    (L + (L' x - L) * exp (nu2 x) + eps2 x) by (unfold expm1; ring).
  rewrite !exp_plus; ring.
Qed.

(* ---------- sigmoids, (20a) and (20b) ---------- *)

Section Sigmoid.

(* Of a part, nu2 is not used: x_t is eps1, h_t is d. *)
Definition difference_error (x : part) : R := eps1 x.
Definition sg (L : R) (x : part) : R := / (1 + exp (- (L' x + difference_error x - L))).
Definition next_L_sg (L : R) (x : part) : R := logaddexp L (L' x + difference_error x) + d x.

Fixpoint last_L_sg (L : R) (parts : list part) : R :=
  match parts with [] => L | x :: rest => last_L_sg (next_L_sg L x) rest end.
Fixpoint last_out_sg (out L : R) (parts : list part) : R :=
  match parts with
  | [] => out
  | x :: rest => last_out_sg (out + sg L x * (O x - out)) (next_L_sg L x) rest
  end.

(* The shared error of a partial, and what it sums to. *)
Fixpoint weights (parts : list part) : list (R * R) :=
  match parts with
  | [] => []
  | x :: rest => (O x, L' x + (difference_error x + (d x + sum d rest))) :: weights rest
  end.

Lemma sigmoid_step out L x : (out + sg L x * (O x - out)) * exp (next_L_sg L x)
  = (out * exp L + O x * exp (L' x + difference_error x)) * exp (d x).
Proof.
  unfold next_L_sg; rewrite exp_plus, exp_logaddexp; unfold sg;
      set (y := L' x + difference_error x).
  replace (- (y - L)) with (L + - y) by ring; rewrite exp_plus, exp_Ropp.
  pose proof (exp_pos L); pose proof (exp_pos y); field; split; lra.
Qed.

Theorem sigmoid_merge_is_convex out L parts :
  last_out_sg out L parts
  = (out * exp (L + sum d parts) + sum (fun x => fst x * exp (snd x)) (weights parts))
    / (exp (L + sum d parts) + sum (fun x => exp (snd x)) (weights parts)).
Proof.
  assert (top : forall parts out L, last_out_sg out L parts * exp (last_L_sg L parts)
    = out * exp (L + sum d parts) + sum (fun x => fst x * exp (snd x)) (weights parts)).
  { clear; induction parts as [|x rest IH]; intros out L;
      cbn [last_out_sg last_L_sg sum weights fst snd]; [rewrite !Rplus_0_r; reflexivity|].
    rewrite IH, exp_plus, <- Rmult_assoc, sigmoid_step, !exp_plus; ring. }
  assert (below : forall parts L, exp (last_L_sg L parts)
    = exp (L + sum d parts) + sum (fun x => exp (snd x)) (weights parts)).
  { clear; induction parts as [|x rest IH]; intros L; cbn [last_L_sg sum weights snd];
      [rewrite !Rplus_0_r; reflexivity|].
    rewrite IH; unfold next_L_sg; rewrite !exp_plus, exp_logaddexp, !exp_plus; ring. }
  rewrite <- top, <- below; pose proof (exp_pos (last_L_sg L parts)); field; lra.
Qed.

(* (20b): steps that are off by at most kappa sg spread end off by at most kappa spread. *)
Theorem sigmoid_steps_add_to_one kappa spread (steps : list (R * R)) (e : R) :
  0 <= kappa * spread -> Rabs e <= kappa * spread ->
  Forall (fun x => 0 <= fst x <= 1 /\ Rabs (snd x) <= kappa * (fst x * spread)) steps ->
  Rabs (fold_left (fun e x => (1 - fst x) * e + snd x) steps e) <= kappa * spread.
Proof.
  intros P start ok; revert e start; induction ok as [|x rest (range & small) _ IH]; intros e start;
    simpl; [exact start|]; apply IH.
  replace (kappa * spread) with ((1 - fst x) * (kappa * spread) + kappa * (fst x * spread)) by ring.
  apply Rabs_plus_le; [apply Rabs_mult_le; [rewrite Rabs_right|]|]; lra.
Qed.

End Sigmoid.
