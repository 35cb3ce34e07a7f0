(* Log budgets, (1) of the contract, and the sums of (2) and (3): rounding errors as factors
   e^theta.

   In words.
   1. A factor 1 + d with |d| <= u < 1 is e^theta with |theta| <= hat(u) = - ln(1 - u), and no
   smaller
      bound would do.  Budgets of factors add.
   2. Any tree of rounded additions distributes over its terms: the computed sum is
      sum_i x_i e^{theta_i} + e, where |theta_i| <= depth_i hat(u), depth_i counts the additions
      that term i passes, and e collects the absolute errors, each enlarged by at most the factors
      above it.  A tree of n terms has depth at most n - 1, whatever its shape (any_order).  Sums of
      sums add their depths (blocked); k levels of pairs take 2^k terms (tree).
   3. An error of at most rho sum|x_i| distributes over the terms as factors 1 +- rho; a step of a
      matrix unit that aligns b products and its accumulator to the largest exponent and truncates
      is of that kind, with rho = 2^-23 + (b + [k < 0]) 2^-(23+k). *)

Require Import Reals Lra Lia List.
From ringproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Notation total := (sum (fun x : R => x)).

(* ---------- (1) ---------- *)

Definition hat (u : R) : R := - ln (1 - u).

Theorem factor_budget u d : u < 1 -> Rabs d <= u -> exists theta, 1 + d = exp theta
  /\ Rabs theta <= hat u.
Proof.
  intros small near%Rabs_bounds; exists (ln (1 + d)); split; [rewrite exp_ln; lra|].
  unfold hat; apply Rabs_le; split.
  - rewrite Ropp_involutive; apply ln_le; lra.
  - rewrite <- ln_Rinv by lra; apply ln_le; [lra|]; apply (Rmult_le_reg_r (1 - u)); [lra|].
    rewrite Rinv_l by lra; nra.
Qed.

(* The bound is reached at d = - u. *)
Theorem factor_budget_reached u : 0 <= u < 1 -> 1 + - u = exp (- hat u).
Proof. intros; unfold hat; rewrite Ropp_involutive, exp_ln; lra. Qed.

Lemma hat_nonneg u : 0 <= u < 1 -> 0 <= hat u.
Proof.
  intros; unfold hat; pose proof (ln_le (1 - u) 1) as L; rewrite ln_1 in L; lra.
Qed.

(* A product of n such factors, in any places: budgets add. *)
Theorem budgets_add u ds : 0 <= u < 1 -> Forall (fun d => Rabs d <= u) ds ->
  exists theta, fold_right (fun d rest => (1 + d) * rest) 1 ds = exp theta
  /\ Rabs theta <= INR (length ds) * hat u.
Proof.
  intros small; induction 1 as [|d ds near _ (theta & E & le)].
  - exists 0; simpl; rewrite exp_0, Rabs_R0; split; [reflexivity | lra].
  - destruct (factor_budget u d) as (theta' & E' & le'); [lra | exact near |].
    exists (theta' + theta); cbn [fold_right length]; rewrite E, E', exp_plus, S_INR; split;
        [easy|].
    replace ((INR (length ds) + 1) * hat u) with (hat u + INR (length ds) * hat u) by ring.
    apply Rabs_plus_le; assumption.
Qed.

(* ---------- sums whose terms carry factors ---------- *)

(* y = sum_i x_i e^{theta_i} with |theta_i| <= budget for every i. *)
Inductive perturbed (budget : R) : list R -> R -> Prop :=
  | perturbed_nil : perturbed budget [] 0
  | perturbed_cons x theta xs y : Rabs theta <= budget -> perturbed budget xs y ->
      perturbed budget (x :: xs) (x * exp theta + y).

Lemma perturbed_one budget x : 0 <= budget -> perturbed budget [x] x.
Proof.
  intros; replace x with (x * exp 0 + 0) at 2 by (rewrite exp_0; ring).
  constructor; [rewrite Rabs_R0; assumption | constructor].
Qed.

Lemma perturbed_app budget xs y xs' y' :
  perturbed budget xs y -> perturbed budget xs' y' -> perturbed budget (xs ++ xs') (y + y').
Proof.
  intros P P'; induction P as [|x theta xs y near _ IH]; simpl; [rewrite Rplus_0_l; exact P'|].
  rewrite Rplus_assoc; constructor; assumption.
Qed.

Lemma perturbed_weaken budget budget' xs y : budget <= budget' ->
  perturbed budget xs y -> perturbed budget' xs y.
Proof. intros le; induction 1; constructor; trivial; lra. Qed.

(* One more factor for all terms. *)
Lemma perturbed_scale budget b xs y theta : Rabs theta <= b ->
  perturbed budget xs y -> perturbed (budget + b) xs (y * exp theta).
Proof.
  intros near; induction 1 as [|x t xs y near' _ IH]; [rewrite Rmult_0_l; constructor|].
  replace ((x * exp t + y) * exp theta) with (x * exp (t + theta) + y * exp theta)
    by (rewrite exp_plus; ring).
  constructor; [apply Rabs_plus_le; assumption | exact IH].
Qed.

(* What it means for the sum: the error is at most expm1(budget) sum|x_i|. *)
Theorem perturbed_error budget xs y : perturbed budget xs y ->
  Rabs (y - total xs) <= expm1 budget * sum Rabs xs.
Proof.
  induction 1 as [|x theta xs y near _ IH]; simpl.
  - rewrite Rminus_eq_0, Rabs_R0; lra.
  - replace (x * exp theta + y - (x + total xs)) with (expm1 theta * x + (y - total xs))
      by (unfold expm1; ring).
    rewrite Rmult_plus_distr_l; apply Rabs_plus_le; [|exact IH].
    apply Rabs_mult_le; [apply Rabs_expm1_le, near | apply Rle_refl].
Qed.

(* ---------- trees of additions, (2) ---------- *)

(* A node adds its two parts, with a relative error d and an absolute one e. *)
Inductive tree := Leaf (x : R) | Node (d e : R) (left right : tree).

Fixpoint terms (t : tree) : list R :=
  match t with Leaf x => [x] | Node _ _ a b => terms a ++ terms b end.
Fixpoint computed (t : tree) : R :=
  match t with Leaf x => x | Node d e a b => (computed a + computed b) * (1 + d) + e end.
Fixpoint height (t : tree) : nat :=
  match t with Leaf _ => 0 | Node _ _ a b => S (max (height a) (height b)) end.
Fixpoint additions (t : tree) : nat :=
  match t with Leaf _ => 0 | Node _ _ a b => S (additions a + additions b) end.
Fixpoint legal (u eta : R) (t : tree) : Prop :=
  match t with
  | Leaf _ => True
  | Node d e a b => Rabs d <= u /\ Rabs e <= eta /\ legal u eta a /\ legal u eta b
  end.

Theorem tree_distributes u eta t : 0 <= u < 1 -> 0 <= eta -> legal u eta t ->
  let budget := INR (height t) * hat u in
  exists y, perturbed budget (terms t) y
  /\ Rabs (computed t - y) <= INR (additions t) * eta * exp budget.
Proof.
  intros small Pe; pose proof (hat_nonneg u small) as Pu.
  induction t as [x | d e a IHa b IHb]; cbn [legal height terms computed additions].
  - intros _; exists x; split; [apply perturbed_one; simpl; lra|].
    rewrite Rminus_eq_0, Rabs_R0; simpl; lra.
  - intros (near & near' & La & Lb).
    destruct (IHa La) as (ya & Pa & Ea), (IHb Lb) as (yb & Pb & Eb).
    destruct (factor_budget u d) as (theta & -> & le); [lra | exact near |].
    set (top := max (height a) (height b)) in *; rewrite S_INR.
    assert (Ha : INR (height a) * hat u <= INR top * hat u)
      by (apply Rmult_le_compat_r; [lra | apply le_INR; unfold top; lia]).
    assert (Hb : INR (height b) * hat u <= INR top * hat u)
      by (apply Rmult_le_compat_r; [lra | apply le_INR; unfold top; lia]).
    replace ((INR top + 1) * hat u) with (INR top * hat u + hat u) by ring.
    exists ((ya + yb) * exp theta); split.
    + apply perturbed_scale; [exact le|]; apply perturbed_app.
      * exact (perturbed_weaken _ _ _ _ Ha Pa).
      * exact (perturbed_weaken _ _ _ _ Hb Pb).
    + set (B := INR top * hat u) in *.
      replace ((computed a + computed b) * exp theta + e - (ya + yb) * exp theta)
        with (exp theta * ((computed a - ya) + (computed b - yb)) + e) by ring.
      rewrite S_INR, plus_INR, exp_plus.
      assert (1 <= exp B * exp (hat u)).
      { rewrite <- exp_plus, <- exp_0; apply exp_le; unfold B; pose proof (pos_INR top); nra. }
      apply Rle_trans with
        (exp (hat u) * (INR (additions a) * eta * exp B + INR (additions b) * eta * exp B) + eta).
      * apply Rabs_plus_le; [|exact near']; apply Rabs_mult_le; [apply Rabs_exp_le, le|].
        apply Rabs_plus_le; eapply Rle_trans; eauto; apply Rmult_le_compat_l;
          try (apply Rmult_le_pos; [apply pos_INR | exact Pe]); apply exp_le; assumption.
      * assert (eta <= eta * (exp B * exp (hat u))) by nra; lra.
Qed.

(* any_order: whatever the shape, a term passes at most n - 1 additions. *)
Theorem any_order_height t : (height t <= length (terms t) - 1)%nat.
Proof.
  assert (some : forall t, (1 <= length (terms t))%nat)
    by (induction t0; simpl; [|rewrite app_length]; lia).
  induction t as [|d e a IHa b IHb]; simpl; [lia|]; rewrite app_length.
  pose proof (some a); pose proof (some b); lia.
Qed.

Theorem additions_count t : additions t = (length (terms t) - 1)%nat.
Proof.
  assert (some : forall t, (1 <= length (terms t))%nat)
    by (induction t0; simpl; [|rewrite app_length]; lia).
  induction t as [|d e a IHa b IHb]; simpl; [lia|]; rewrite app_length, IHa, IHb.
  pose proof (some a); pose proof (some b); lia.
Qed.

(* blocked: sums of blocks, added one after the other to a total. *)
Fixpoint chain (start : tree) (blocks : list (R * R * tree)) : tree :=
  match blocks with
  | [] => start
  | (d, e, block) :: rest => chain (Node d e start block) rest
  end.

Theorem blocked_height start blocks inner :
  (height start <= inner)%nat -> (forall d e b, In (d, e, b) blocks -> height b <= inner)%nat ->
  (height (chain start blocks) <= inner + length blocks)%nat.
Proof.
  assert (G : forall blocks start inner done,
    (height start <= inner + done)%nat -> (forall d e b, In (d, e, b) blocks -> height b <=
        inner)%nat ->
    (height (chain start blocks) <= inner + done + length blocks)%nat).
  { clear; induction blocks as [|[[d e] b] rest IH]; intros start inner done Ht Hb; simpl; [lia|].
    replace (inner + done + S (length rest))%nat with (inner + (S done) + length rest)%nat by lia.
    apply IH; [|intros; eapply Hb; right; eassumption].
    simpl; specialize (Hb d e b (or_introl eq_refl)); lia. }
  intros; specialize (G blocks start inner 0%nat); rewrite Nat.add_0_r in G; auto.
Qed.

(* tree: k levels of pairs sum 2^k terms, and a full level fits no more. *)
Theorem terms_of_height t : (length (terms t) <= 2 ^ height t)%nat.
Proof.
  induction t as [|d e a IHa b IHb]; simpl; [lia|]; rewrite app_length.
  pose proof (Nat.pow_le_mono_r 2 (height a) (max (height a) (height b)) ltac:(lia) ltac:(lia)).
  pose proof (Nat.pow_le_mono_r 2 (height b) (max (height a) (height b)) ltac:(lia) ltac:(lia));
      lia.
Qed.

(* ---------- matrix units, (3) ---------- *)

(* An error that is small against the sum of the terms' sizes is a matter of factors. *)
Theorem error_distributes rho xs y : 0 <= rho < 1 ->
  Rabs (y - total xs) <= rho * sum Rabs xs -> perturbed (hat rho) xs y.
Proof.
  intros small near; set (A := sum Rabs xs) in *.
  assert (PA : 0 <= A) by (apply sum_nonneg; intros; apply Rabs_pos).
  (* Every term takes the share f |x_i| of the error, |f| <= rho. *)
  assert (F : exists f, Rabs f <= rho /\ y - total xs = f * A).
  { destruct (Req_dec A 0) as [Z | NZ].
    - exists 0; rewrite Rabs_R0, Rmult_0_l; split; [lra|]; rewrite Z, Rmult_0_r in near.
      pose proof (Rabs_pos (y - total xs)); apply Rabs_bounds in near; lra.
    - exists ((y - total xs) / A); split; [|field; exact NZ].
      replace rho with (rho * A / A) by (field; exact NZ); apply Rabs_div_le; lra. }
  destruct F as (f & Hf & E); replace y with (total xs + f * A) by lra; unfold A; clear - small Hf.
  induction xs as [|x xs IH]; simpl; [rewrite Rmult_0_r, Rplus_0_r; constructor|].
  destruct (factor_budget rho (if Rle_dec 0 x then f else - f)) as (theta & Et & le); [lra | |].
  { destruct Rle_dec; [|rewrite Rabs_Ropp]; assumption. }
  replace (x + total xs + f * (Rabs x + sum Rabs xs)) with
    (x * exp theta + (total xs + f * sum Rabs xs)); [constructor; assumption|].
  rewrite <- Et; destruct (Rle_dec 0 x); [rewrite Rabs_right by lra | rewrite Rabs_left by lra];
      ring.
Qed.

(* One step: the addends xs (products and accumulator) are truncated to xs' at an absolute position
   `unit` = 2^(e - 23 - k), where 2^e is at most their largest size, and their exact sum is
   truncated to y with 24 bits.  `cut` of the addends lose something: all but the largest if k >= 0.
   *)
Theorem matrix_step_error (xs xs' : list R) (cut : nat) (unit y top k2 : R) :
  0 <= unit -> Forall2 (fun x x' => Rabs x' <= Rabs x) xs xs' ->
  Rabs (total xs' - total xs) <= INR cut * unit ->
  unit <= k2 * top -> 0 <= k2 -> (exists x, In x xs /\ top <= Rabs x) ->
  Rabs (y - total xs') <= / 2 ^ 23 * Rabs (total xs') ->
  Rabs (y - total xs) <= (/ 2 ^ 23 + INR cut * k2) * sum Rabs xs.
Proof.
  intros Pu smaller lost position Pk (x & ix & largest) rounded.
  assert (A : top <= sum Rabs xs).
  { apply in_split in ix as (a & b & ->); rewrite sum_app; simpl.
    assert (P : forall q, 0 <= sum Rabs q) by (intros; apply sum_nonneg; intros; apply Rabs_pos).
    pose proof (P a); pose proof (P b); lra. }
  assert (A' : Rabs (total xs') <= sum Rabs xs).
  { eapply Rle_trans; [apply sum_abs|]; clear - smaller.
    induction smaller as [|x x' xs xs' le _ IH]; simpl; lra. }
  replace (y - total xs) with ((y - total xs') + (total xs' - total xs)) by ring.
  rewrite Rmult_plus_distr_r; apply Rabs_plus_le.
  - eapply Rle_trans; [exact rounded | apply Rmult_le_compat_l; lra].
  - eapply Rle_trans; [exact lost|]; rewrite Rmult_assoc.
    apply Rmult_le_compat_l; [apply pos_INR|]; nra.
Qed.

(* After S steps every product has passed at most S of them. *)
Theorem matrix_steps rho acc xs ps y n : 0 <= rho < 1 ->
  perturbed (INR n * hat rho) xs acc ->
  Rabs (y - (acc + total ps)) <= rho * (Rabs acc + sum Rabs ps) ->
  perturbed (INR (S n) * hat rho) (xs ++ ps) y.
Proof.
  intros small before step; pose proof (hat_nonneg rho small).
  assert (one : perturbed (hat rho) (acc :: ps) y) by (apply error_distributes; trivial).
  inversion one as [|x theta ps' rest near P Ex Ey]; subst.
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l; apply perturbed_app.
  - apply perturbed_scale; assumption.
  - eapply perturbed_weaken; [|exact P]; pose proof (pos_INR n); nra.
Qed.
