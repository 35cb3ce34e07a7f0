(* Theorem T2 of the contract: the bounds (28) to (33) of the gradients.

   In words.  For one row i and key j the exact gradient of the score is dS = p t f with t = dP - D
   + dL and the softcap's derivative f.  The kernel has

     P^  = p e^{x + lambda} + g          x per element, lambda common to the row, g absolute,
     dS^ = P^ (t + et - de) (f + phi) e^theta + underflow,

   de being the row's error of D.  Capital letters bound sizes: |x| <= X, |lambda| <= Lam, |g| <= G,
   |et| <= EP, |de| <= ED, |phi| <= Ef, |theta| <= Th; F = |f| + Ef.

   Sums over rows or keys multiply every term by e^psi, |psi| <= A (products, accumulation, stores),
   and add absolute errors.  For dQ, lambda and de are common to all keys of the row: they multiply
   signed sums, sum_j dS k_j and sum_j p f k_j, and not sums of absolute values. *)

Require Import Reals Lra List.
From ringproof Require Import Sums.
From ringproof Require OutputBound LseBound.
Import ListNotations.
Open Scope R_scope.

(* ---------- the recomputed probability, (28) ---------- *)

(* P^ = exp of the computed s^ - L^, where s^ = (1 + delta) (s + e) and L^ = L - lambda. *)
Theorem recomputed_probability s L e delta lambda nu eps eps_ij t_c Lam N E :
  Rabs e <= eps_ij -> Rabs delta <= t_c -> Rabs lambda <= Lam -> Rabs nu <= N -> Rabs eps <= E ->
  exists x, exp (((1 + delta) * (s + e) - (L - lambda)) * exp nu) * exp eps
            = exp (s - L) * exp (x + lambda)
  /\ Rabs x <= eps_ij + t_c * (Rabs s + eps_ij)
               + expm1 N * (Rabs (s - L) + (eps_ij + t_c * (Rabs s + eps_ij)) + Lam) + E.
Proof.
  intros He Hd Hl Hn Heps.
  assert (shift : Rabs (e + delta * (s + e)) <= eps_ij + t_c * (Rabs s + eps_ij)).
  { apply Rabs_plus_le; [exact He | apply Rabs_mult_le; [exact Hd|]].
    apply Rabs_plus_le; [apply Rle_refl | exact He]. }
  set (sh := e + delta * (s + e)) in *.
  exists (sh + expm1 nu * ((s - L) + sh + lambda) + eps); split.
  - rewrite <- !exp_plus; f_equal; unfold sh, expm1; ring.
  - apply Rabs_plus_le; [apply Rabs_plus_le; [exact shift|] | exact Heps].
    apply Rabs_mult_le; [apply Rabs_expm1_le, Hn|].
    apply Rabs_plus_le; [apply Rabs_plus_le; [apply Rle_refl | exact shift] | exact Hl].
Qed.

(* A stored P^ is w e^{c + nu} over the computed denominator: a row-common factor again, (28a). *)
Theorem stored_probability {Key : Type} (keys : list Key) w (e E : @OutputBound.errors Key) nu k :
  keys <> [] -> (forall k, In k keys -> 0 < w k) -> OutputBound.within keys e E ->
  0 < OutputBound.D keys w E -> exists lambda,
  w k * exp (OutputBound.c e k + nu) / OutputBound.denominator keys w e
  = OutputBound.p keys w k * exp (OutputBound.c e k + nu + lambda)
  /\ Rabs lambda <= LseBound.r keys w E.
Proof.
  intros some positive inside PD.
  pose proof (OutputBound.W_positive keys w some positive) as PW.
  pose proof (OutputBound.denominator_positive keys w some positive E PD).
  pose proof (OutputBound.denominator_large keys w some positive e E inside).
  exists (ln (OutputBound.W keys w) - ln (OutputBound.denominator keys w e)); split.
  - rewrite (exp_plus (OutputBound.c e k + nu)); unfold Rminus.
    rewrite (exp_plus (ln (OutputBound.W keys w))), exp_Ropp, !exp_ln by lra.
    unfold OutputBound.p; field; lra.
  - rewrite <- Rabs_Ropp, Ropp_minus_distr; apply LseBound.log_denominator_bound; assumption.
Qed.

(* ---------- one element, (29) ---------- *)

Section Element.

Variables (p t f : R).                                   (* exact *)
Variables (x lambda g et de phi theta : R).              (* the errors *)
Variables (X Lam G EP ED Ef Th : R).                     (* their bounds *)
Hypothesis p_nonneg : 0 <= p.
Hypothesis x_small : Rabs x <= X.
Hypothesis lambda_small : Rabs lambda <= Lam.
Hypothesis g_small : Rabs g <= G.
Hypothesis et_small : Rabs et <= EP.
Hypothesis de_small : Rabs de <= ED.
Hypothesis phi_small : Rabs phi <= Ef.
Hypothesis theta_small : Rabs theta <= Th.

Definition dS_computed : R := (p * exp (x + lambda) + g) * (t + et - de) * (f + phi) * exp theta.

Definition F : R := Rabs f + Ef.
Definition ge : R := G * exp Th * ((Rabs t + EP + ED) * F).
Definition ES : R :=
  p * (expm1 (X + Lam + Th) * Rabs (t * f)
       + exp (X + Lam + Th) * (Rabs t * Ef + F * (EP + ED))) + ge.

Lemma F_bounds : Rabs (f + phi) <= F.
Proof. apply Rabs_plus_le; [apply Rle_refl | exact phi_small]. Qed.

Lemma t_bounds : Rabs (t + et - de) <= Rabs t + EP + ED.
Proof. apply Rabs_minus_le; [apply Rabs_plus_le; [apply Rle_refl|]|]; assumption. Qed.

Theorem element_error : Rabs (dS_computed - p * t * f) <= ES.
Proof.
  set (y := x + lambda + theta).
  assert (y_small : Rabs y <= X + Lam + Th) by (repeat apply Rabs_plus_le; assumption).
  replace (dS_computed - p * t * f) with
    (p * (expm1 y * (t * f) + exp y * (t * phi + (f + phi) * (et - de)))
     + g * exp theta * ((t + et - de) * (f + phi)))
    by (unfold dS_computed, y, expm1; rewrite !exp_plus; ring).
  unfold ES, ge; apply Rabs_plus_le.
  - apply Rabs_mult_le; [rewrite Rabs_right; lra|].
    apply Rabs_plus_le; apply Rabs_mult_le; auto using Rabs_expm1_le, Rabs_exp_le, Rle_refl.
    apply Rabs_plus_le; apply Rabs_mult_le; auto using Rle_refl, F_bounds, Rabs_minus_le.
  - apply Rabs_mult_le; apply Rabs_mult_le; auto using Rabs_exp_le, F_bounds, t_bounds.
Qed.

End Element.

(* ---------- sums over rows: dV and dK, (30), (31) ---------- *)

Section OverRows.

Context {Row : Type} (rows : list Row).

(* A value y_i whose computed form is y_i + err_i, summed with weights z_i and factors e^{psi_i},
   plus an absolute error per term, and one of the sum. *)
Variables (y z err psi under : Row -> R) (last : R).
Variables (Err Psi Under : Row -> R) (A N : R).
Hypothesis err_small : forall i, In i rows -> Rabs (err i) <= Err i.
Hypothesis psi_small : forall i, In i rows -> Rabs (psi i) <= A.
Hypothesis under_small : forall i, In i rows -> Rabs (under i) <= Under i.
Hypothesis last_small : Rabs last <= N.

(* The scale sigma may act before or after the underflow of a term: that is in `under`. *)
Variable sigma : R.

Definition gradient : R := sigma * sum (fun i => y i * z i) rows.
Definition gradient_computed : R :=
  sum (fun i => (sigma * (y i + err i) + under i) * exp (psi i) * z i) rows + last.

(* (31); with sigma = 1 and y = p, z = dO it is (30). *)
Theorem gradient_error : Rabs (gradient_computed - gradient) <=
  Rabs sigma * sum (fun i => (exp A * Err i + expm1 A * Rabs (y i)) * Rabs (z i)) rows
  + exp A * sum (fun i => Under i * Rabs (z i)) rows + N.
Proof.
  unfold gradient, gradient_computed; rewrite <- !sum_scale, <- sum_plus.
  replace (sum (fun i => (sigma * (y i + err i) + under i) * exp (psi i) * z i) rows + last
           - sum (fun i => sigma * (y i * z i)) rows)
    with (sum (fun i => (sigma * (err i * exp (psi i) + y i * expm1 (psi i))
                         + under i * exp (psi i)) * z i) rows + last).
  - apply Rabs_plus_le; [apply sum_abs_le; intros i ir | exact last_small].
    replace (Rabs sigma * ((exp A * Err i + expm1 A * Rabs (y i)) * Rabs (z i))
             + exp A * (Under i * Rabs (z i)))
      with ((Rabs sigma * (Err i * exp A + Rabs (y i) * expm1 A) + Under i * exp A) * Rabs (z i))
      by ring.
    pose proof (psi_small i ir).
    apply Rabs_mult_le; [|apply Rle_refl]; apply Rabs_plus_le; apply Rabs_mult_le;
      auto using Rle_refl, Rabs_exp_le.
    apply Rabs_plus_le; apply Rabs_mult_le; auto using Rle_refl, Rabs_exp_le, Rabs_expm1_le.
  - enough (E : sum (fun i => (sigma * (y i + err i) + under i) * exp (psi i) * z i) rows
                = sum (fun i => (sigma * (err i * exp (psi i) + y i * expm1 (psi i))
                         + under i * exp (psi i)) * z i) rows + sum (fun i => sigma * (y i * z i))
                             rows)
      by (rewrite E; ring).
    rewrite <- sum_plus; apply sum_eq; intros; unfold expm1; ring.
Qed.

End OverRows.

(* (30), written with the parts of P^ = p e^{x + lambda} + g: all factors join in one budget. *)
Theorem dV_error {Row : Type} (rows : list Row) (p dO x lambda psi g under : Row -> R) (last : R)
    (X Lam G Under : Row -> R) (A N : R) :
  (forall i, In i rows -> 0 <= p i) ->
  (forall i, In i rows -> Rabs (x i) <= X i /\ Rabs (lambda i) <= Lam i /\ Rabs (psi i) <= A
                          /\ Rabs (g i) <= G i /\ Rabs (under i) <= Under i) -> Rabs last <= N ->
  Rabs (sum (fun i => (p i * exp (x i + lambda i) + g i + under i) * exp (psi i) * dO i) rows + last
        - sum (fun i => p i * dO i) rows)
  <= sum (fun i => (p i * expm1 (X i + Lam i + A) + (G i + Under i) * exp A) * Rabs (dO i)) rows +
      N.
Proof.
  intros P small last_small.
  replace (sum _ rows + last - sum _ rows) with
    (sum (fun i => (p i * expm1 (x i + lambda i + psi i) + (g i + under i) * exp (psi i)) * dO i)
        rows
     + last).
  - apply Rabs_plus_le; [apply sum_abs_le; intros i ir | exact last_small].
    destruct (small i ir) as (Hx & Hl & Hp & Hg & Hu); pose proof (P i ir).
    apply Rabs_mult_le; [apply Rabs_plus_le; apply Rabs_mult_le | apply Rle_refl].
    + rewrite Rabs_right; lra.
    + apply Rabs_expm1_le; repeat apply Rabs_plus_le; assumption.
    + apply Rabs_plus_le; assumption.
    + apply Rabs_exp_le; assumption.
  - enough (E : sum (fun i => (p i * exp (x i + lambda i) + g i + under i) * exp (psi i) * dO i)
      rows
      = sum (fun i => (p i * expm1 (x i + lambda i + psi i) + (g i + under i) * exp (psi i)) * dO
          i) rows
        + sum (fun i => p i * dO i) rows) by (rewrite E; ring).
    rewrite <- sum_plus; apply sum_eq; intros; unfold expm1; rewrite !exp_plus; ring.
Qed.

(* (33): the sink's gradient, over all rows; d = D - dL. *)
Theorem dSink_error {Row : Type} (rows : list Row) (p d x lambda g de psi under : Row -> R)
    (X Lam G ED Under : Row -> R) (A : R) :
  (forall i, In i rows -> 0 <= p i) ->
  (forall i, In i rows -> Rabs (x i) <= X i /\ Rabs (lambda i) <= Lam i /\ Rabs (psi i) <= A
     /\ Rabs (g i) <= G i /\ Rabs (de i) <= ED i /\ Rabs (under i) <= Under i) ->
  Rabs (sum (fun i => (p i * exp (x i + lambda i) + g i) * (d i + de i) * exp (psi i) + under i)
      rows
        - sum (fun i => p i * d i) rows)
  <= sum (fun i => p i * (expm1 (X i + Lam i + A) * Rabs (d i) + exp (X i + Lam i + A) * ED i)
                   + G i * exp A * (Rabs (d i) + ED i) + Under i) rows.
Proof.
  intros P small.
  replace (_ - _) with
    (sum (fun i => p i * (expm1 (x i + lambda i + psi i) * d i + exp (x i + lambda i + psi i) * de
        i)
                   + g i * exp (psi i) * (d i + de i) + under i) rows).
  - apply sum_abs_le; intros i ir; destruct (small i ir) as (Hx & Hl & Hp & Hg & Hd & Hu).
    pose proof (P i ir); assert (Rabs (x i + lambda i + psi i) <= X i + Lam i + A)
      by (repeat apply Rabs_plus_le; assumption).
    apply Rabs_plus_le; [apply Rabs_plus_le | exact Hu]; apply Rabs_mult_le.
    + rewrite Rabs_right; lra.
    + apply Rabs_plus_le; apply Rabs_mult_le; auto using Rabs_expm1_le, Rabs_exp_le, Rle_refl.
    + apply Rabs_mult_le; auto using Rabs_exp_le.
    + apply Rabs_plus_le; [apply Rle_refl | exact Hd].
  - enough (E : sum (fun i => (p i * exp (x i + lambda i) + g i) * (d i + de i) * exp (psi i)
        + under i) rows
      = sum (fun i => p i * (expm1 (x i + lambda i + psi i) * d i + exp (x i + lambda i + psi i) *
          de i)
                   + g i * exp (psi i) * (d i + de i) + under i) rows + sum (fun i => p i * d i)
                       rows)
      by (rewrite E; ring).
    rewrite <- sum_plus; apply sum_eq; intros; unfold expm1; rewrite !exp_plus; ring.
Qed.

(* ---------- a sum over the keys of one row: dQ, (32) ---------- *)

Section OverKeys.

Context {Key : Type} (keys : list Key).
Variables (p t f k : Key -> R).                               (* exact, and one column of K *)
Variables (x g et phi theta psi under : Key -> R) (lambda de sigma last : R).
Variables (X G EP Ef Under : Key -> R) (Lam ED Th A N : R).
Hypothesis p_nonneg : forall j, In j keys -> 0 <= p j.
Hypothesis small : forall j, In j keys ->
  Rabs (x j) <= X j /\ Rabs (g j) <= G j /\ Rabs (et j) <= EP j /\ Rabs (phi j) <= Ef j
  /\ Rabs (theta j) <= Th /\ Rabs (psi j) <= A /\ Rabs (under j) <= Under j.
Hypothesis lambda_small : Rabs lambda <= Lam.
Hypothesis de_small : Rabs de <= ED.
Hypothesis last_small : Rabs last <= N.

Definition dQ : R := sigma * sum (fun j => p j * t j * f j * k j) keys.
Definition dQ_computed : R :=
  sum (fun j => (sigma * dS_computed (p j) (t j) (f j) (x j) lambda (g j) (et j) de (phi j) (theta
      j)
                 + under j) * exp (psi j) * k j) keys + last.

(* The signed sums that the common errors multiply. *)
Definition dS_k : R := sum (fun j => p j * t j * f j * k j) keys.
Definition k_bar : R := sum (fun j => p j * f j * k j) keys.

Definition e_ic : R := sum (fun j => Rabs (k j) *
  (p j * expm1 (X j + Th + A) * (Rabs (t j * f j) + Rabs (f j) * ED)
   + p j * exp (X j + Th + A) * (Rabs (t j) * Ef j + F (f j) (Ef j) * EP j + Ef j * ED)
   + ge (t j) (f j) (G j) (EP j) ED (Ef j) Th * exp A)) keys.

(* What remains of an element when the common factors are taken out. *)
Definition rest (j : Key) : R := k j *
  (p j * expm1 (x j + theta j + psi j) * (t j * f j - f j * de)
   + p j * exp (x j + theta j + psi j) * (t j * phi j + (f j + phi j) * et j - phi j * de)).
Definition rest_g (j : Key) : R := k j *
  (g j * exp (theta j) * ((t j + et j - de) * (f j + phi j)) * exp (psi j)).

Lemma dQ_splits : dQ_computed - dQ =
  sigma * (exp lambda * (sum rest keys + - de * k_bar) + expm1 lambda * dS_k + sum rest_g keys)
  + sum (fun j => under j * exp (psi j) * k j) keys + last.
Proof.
  unfold dQ_computed, dQ; fold dS_k.
  rewrite (sum_eq (fun j => (sigma * _ + under j) * exp (psi j) * k j)
    (fun j => sigma * exp lambda * rest j + (- (sigma * exp lambda * de) * (p j * f j * k j)
      + (sigma * exp lambda * (p j * t j * f j * k j) + (sigma * rest_g j
      + under j * exp (psi j) * k j))))).
  - rewrite !sum_plus, !sum_scale; fold k_bar dS_k; unfold expm1; ring.
  - intros j _; unfold rest, rest_g, dS_computed, expm1; rewrite !exp_plus; ring.
Qed.

Theorem dQ_error : Rabs (dQ_computed - dQ) <=
  Rabs sigma * (exp Lam * (e_ic + ED * Rabs k_bar) + expm1 Lam * Rabs dS_k)
  + exp A * sum (fun j => Under j * Rabs (k j)) keys + N.
Proof.
  rewrite dQ_splits; pose proof (Rabs_pos lambda).
  assert (grows : 1 <= exp Lam) by (rewrite <- exp_0; apply exp_le; lra).
  set (e_p := sum (fun j => Rabs (k j) *
    (p j * expm1 (X j + Th + A) * (Rabs (t j * f j) + Rabs (f j) * ED)
     + p j * exp (X j + Th + A) * (Rabs (t j) * Ef j + F (f j) (Ef j) * EP j + Ef j * ED))) keys).
  set (e_g := sum (fun j => Rabs (k j) * (ge (t j) (f j) (G j) (EP j) ED (Ef j) Th * exp A)) keys).
  assert (split : e_ic = e_p + e_g)
    by (unfold e_ic, e_p, e_g; rewrite <- sum_plus; apply sum_eq; intros; ring).
  assert (rest_small : Rabs (sum rest keys) <= e_p).
  { apply sum_abs_le; intros j ij; destruct (small j ij) as (Hx & Hg & He & Hf & Ht & Hp & Hu).
    pose proof (p_nonneg j ij).
    assert (y_small : Rabs (x j + theta j + psi j) <= X j + Th + A)
      by (repeat apply Rabs_plus_le; assumption).
    apply Rabs_mult_le; [apply Rle_refl | apply Rabs_plus_le; apply Rabs_mult_le].
    - apply Rabs_mult_le; [rewrite Rabs_right; lra | apply Rabs_expm1_le, y_small].
    - apply Rabs_minus_le; [apply Rle_refl | apply Rabs_mult_le; [apply Rle_refl | exact de_small]].
    - apply Rabs_mult_le; [rewrite Rabs_right; lra | apply Rabs_exp_le, y_small].
    - apply Rabs_minus_le; [apply Rabs_plus_le|]; apply Rabs_mult_le; auto using Rle_refl.
      apply F_bounds, Hf. }
  assert (rest_g_small : Rabs (sum rest_g keys) <= e_g).
  { apply sum_abs_le; intros j ij; destruct (small j ij) as (Hx & Hg & He & Hf & Ht & Hp & Hu).
    apply Rabs_mult_le; [apply Rle_refl | apply Rabs_mult_le; [|apply Rabs_exp_le, Hp]].
    apply Rabs_mult_le; apply Rabs_mult_le; auto using Rabs_exp_le, F_bounds, t_bounds. }
  assert (e_g_nonneg : 0 <= e_g) by (eapply Rle_trans; [apply Rabs_pos | exact rest_g_small]).
  apply Rabs_plus_le; [apply Rabs_plus_le | exact last_small].
  - apply Rabs_mult_le; [apply Rle_refl|].
    apply Rle_trans with (exp Lam * (e_p + ED * Rabs k_bar) + expm1 Lam * Rabs dS_k + e_g);
      [|rewrite split; nra].
    apply Rabs_plus_le; [apply Rabs_plus_le | exact rest_g_small]; apply Rabs_mult_le;
      auto using Rabs_exp_le, Rabs_expm1_le, Rle_refl.
    apply Rabs_plus_le; [exact rest_small|]; apply Rabs_mult_le;
        [now rewrite Rabs_Ropp | apply Rle_refl].
  - rewrite <- sum_scale; apply sum_abs_le; intros j ij.
    destruct (small j ij) as (_ & _ & _ & _ & _ & Hp & Hu).
    replace (exp A * (Under j * Rabs (k j))) with (Under j * exp A * Rabs (k j)) by ring.
    apply Rabs_mult_le; [apply Rabs_mult_le; [exact Hu | apply Rabs_exp_le, Hp] | apply Rle_refl].
Qed.

End OverKeys.
