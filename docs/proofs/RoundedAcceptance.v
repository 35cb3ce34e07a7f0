(* Acceptance by rounding the ends of the interval, rule (35) of the contract, is exact.

   In words.  The judge knows numbers lo <= hi between which the kernel's value lay before its last
   rounding.  With a monotone rounding r to the output format, an output y of that format has

       r(lo) <= y <= r(hi)     if and only if     y = r(x) for some x in [lo, hi].

   So no right answer is refused and no wrong one let through, and no half unit is added.  The same
   for a faithful kernel, which may round either way: RD(lo) <= y <= RU(hi).  If the judge knows o
   only to within a radius, its wide interval never fails a conforming kernel and its narrow one
   passes only conforming outputs, even where it is empty before rounding.

   First for any monotone map, then for every rounding mode of every IEEE format with subnormals,
   with overflow to infinity, with saturation, and with a flush of tiny numbers to zero.  Last: the
   ends must be rounded once; through binary32, bfloat16 goes wrong. *)

Require Import Reals Lra Lia ZArith.
From Flocq Require Import Core.
From ringproof Require Import Sums.
Open Scope R_scope.

Definition monotone (r : R -> R) : Prop := forall x y, x <= y -> r x <= r y.

(* ---------- any monotone rounding ---------- *)

(* The point of [lo, hi] nearest to y. *)
Lemma nearest_point lo hi y : lo <= hi ->
  lo <= y <= hi \/ (y < lo /\ lo <= lo <= hi) \/ (hi < y /\ lo <= hi <= hi).
Proof. lra. Qed.

Theorem accept_iff r lo hi y : monotone r -> r y = y -> lo <= hi ->
  (r lo <= y <= r hi <-> exists x, lo <= x <= hi /\ r x = y).
Proof.
  intros mono fixed order; split; [intros (above & below) | intros (x & (? & ?) & <-); auto].
  destruct (nearest_point lo hi y order) as [i | [(far & i) | (far & i)]];
    [exists y | exists lo | exists hi]; split; trivial; apply Rle_antisym; trivial;
    rewrite <- fixed; apply mono; lra.
Qed.

(* A faithful kernel may round every value down or up, as it likes. *)
Theorem accept_faithful_iff down up lo hi y :
  monotone down -> monotone up -> (forall x, down x <= x <= up x) -> down y = y -> up y = y ->
  lo <= hi ->
  (down lo <= y <= up hi <-> exists x, lo <= x <= hi /\ (down x = y \/ up x = y)).
Proof.
  intros mono mono' around fixed fixed' order; split.
  - intros (above & below).
    destruct (nearest_point lo hi y order) as [i | [(far & i) | (far & i)]];
      [exists y; auto | exists lo | exists hi]; split; trivial; [left | right];
      apply Rle_antisym; trivial; [rewrite <- fixed | rewrite <- fixed']; auto with real.
  - intros (x & (low & high) & [<- | <-]); pose proof (around x);
      pose proof (mono _ _ low); pose proof (mono' _ _ high);
      [pose proof (around hi) | pose proof (around lo)]; lra.
Qed.

(* A kernel that may flush what is smaller than tiny to zero: its box is enlarged to hold 0. *)
Theorem accept_flushed_iff r lo hi y tiny : monotone r -> r y = y -> lo <= hi -> 0 < tiny ->
  (r lo <= y <= r hi \/ (y = 0 /\ lo < tiny /\ - tiny < hi)
   <-> exists x, lo <= x <= hi /\ (r x = y \/ (y = 0 /\ Rabs x < tiny))).
Proof.
  intros mono fixed order P; rewrite accept_iff by assumption; split.
  - intros [(x & i & E) | (E & ? & ?)]; [exists x; auto|].
    destruct (nearest_point lo hi 0 order) as [i | [(far & i) | (far & i)]];
      [exists 0 | exists lo | exists hi]; (split; [trivial | right; split; [trivial|]]);
      apply Rabs_def1; lra.
  - intros (x & i & [E | (E & small)]); [left; eauto | right].
    apply Rabs_def2 in small; repeat split; trivial; lra.
Qed.

(* The judge knows o only as center +- radius.  A kernel's value x lies within e of o. *)
Theorem conforming_never_fails r center radius o e x : monotone r ->
  Rabs (center - o) <= radius -> Rabs (x - o) <= e ->
  r (center - e - radius) <= r x <= r (center + e + radius).
Proof. intros mono C%Rabs_bounds X%Rabs_bounds; split; apply mono; lra. Qed.

Theorem pass_is_earned r center radius o e y : monotone r -> r y = y ->
  Rabs (center - o) <= radius -> 0 <= e ->
  r (center - e + radius) <= y <= r (center + e - radius) -> exists x, Rabs (x - o) <= e /\ r x = y.
Proof.
  intros mono fixed C%Rabs_bounds P inside.
  destruct (Rle_or_lt (center - e + radius) (center + e - radius)) as [order | crossed].
  - apply accept_iff in inside as (x & i & E); trivial; exists x; split; [apply Rabs_le;
      lra | trivial].
  - (* The ends have crossed, yet both round to y; so does the point between them nearest to o. *)
    assert (all : forall x, center + e - radius <= x <= center - e + radius -> r x = y).
    { intros x (low & high); apply mono in low, high; lra. }
    destruct (nearest_point (center + e - radius) (center - e + radius) o ltac:(lra))
      as [i | [(far & i) | (far & i)]];
      [exists o | exists (center + e - radius) | exists (center - e + radius)];
      (split; [apply Rabs_le; lra | apply all, i]).
Qed.

(* ---------- the rounding modes of the formats ---------- *)

Section Format.

Variables (emin precision emax : Z).                  (* emin: exponent of the last subnormal bit *)
Context {precision_positive : Prec_gt_0 precision}.

Notation format := (generic_format radix2 (FLT_exp emin precision)).
Notation rounded := (round radix2 (FLT_exp emin precision)).

Section OneMode.

Variable mode : R -> Z.                               (* ZnearestE, Zfloor, Zceil, Ztrunc, ... *)
Context {mode_valid : Valid_rnd mode}.

Lemma rounded_monotone : monotone (rounded mode).
Proof. intros x y; apply round_le; auto with typeclass_instances. Qed.

Lemma rounded_fixed y : format y -> rounded mode y = y.
Proof. intros; apply round_generic; auto with typeclass_instances. Qed.

Theorem accept_by_rounding lo hi y : format y -> lo <= hi ->
  (rounded mode lo <= y <= rounded mode hi <-> exists x, lo <= x <= hi /\ rounded mode x = y).
Proof. intros; apply accept_iff; auto using rounded_monotone, rounded_fixed. Qed.

(* Overflow: what is rounded to top or beyond becomes top.  With top = 2^emax, the first power of
   two
   outside the format, this is an infinity; with the largest finite number it is saturation. *)
Variable top : R.
Hypothesis top_positive : 0 < top.

Definition limited (x : R) : R := Rmax (- top) (Rmin (rounded mode x) top).

Theorem accept_with_overflow lo hi y : format y -> - top <= y <= top -> lo <= hi ->
  (limited lo <= y <= limited hi <-> exists x, lo <= x <= hi /\ limited x = y).
Proof.
  intros F range; apply accept_iff; unfold limited.
  - intros x x' le; apply Rle_max_compat_l, Rle_min_compat_r, rounded_monotone, le.
  - rewrite rounded_fixed, Rmin_left, Rmax_right by tauto; trivial.
Qed.

End OneMode.

Theorem accept_faithful lo hi y : format y -> lo <= hi ->
  (rounded Zfloor lo <= y <= rounded Zceil hi
   <-> exists x, lo <= x <= hi /\ (rounded Zfloor x = y \/ rounded Zceil x = y)).
Proof.
  intros; apply accept_faithful_iff; auto using rounded_monotone, rounded_fixed, valid_rnd_DN,
    valid_rnd_UP; try (apply rounded_monotone || apply rounded_fixed);
    auto with typeclass_instances.
  intros x; split; [apply round_DN_pt | apply round_UP_pt]; auto with typeclass_instances.
Qed.

End Format.

(* ---------- the ends must be rounded once ---------- *)

Notation to_bfloat16 := (round radix2 (FLT_exp (-133) 8) ZnearestE).
Notation to_binary32 := (round radix2 (FLT_exp (-149) 24) ZnearestE).

(* Between 1 and 2 a format of p bits rounds to multiples of 2^(1-p). *)
Lemma rounded_in_1_2 emin p (x : R) n : (emin < 0)%Z -> (emin <= 1 - p)%Z -> 1 <= x < 2 ->
  ZnearestE (x * bpow radix2 (p - 1)) = n ->
  round radix2 (FLT_exp emin p) ZnearestE x = IZR n * bpow radix2 (1 - p).
Proof.
  intros He Hp Hx <-; assert (M : mag radix2 x = 1%Z :> Z) by (apply mag_unique_pos; simpl; lra).
  unfold round, scaled_mantissa, cexp, F2R, FLT_exp; cbn [Fnum Fexp];
      rewrite M, Z.max_l by exact Hp.
  replace (- (1 - p))%Z with (p - 1)%Z by lia; reflexivity.
Qed.

(* Just above the middle between two bfloat16 numbers: binary32 rounds it to the middle itself. *)
Theorem double_rounding_is_wrong : let x := 1 + / 2 ^ 8 + / 2 ^ 30 in
  to_bfloat16 x = 1 + / 2 ^ 7 /\ to_bfloat16 (to_binary32 x) = 1.
Proof.
  intros x; split.
  - rewrite (rounded_in_1_2 _ _ _ 129); [simpl; lra | lia | lia | unfold x; lra |].
    apply Znearest_imp; unfold x; simpl; apply Rabs_def1; lra.
  - rewrite (rounded_in_1_2 _ 24 x 8421376); [| lia | lia | unfold x; lra |].
    2: { apply Znearest_imp; unfold x; simpl; apply Rabs_def1; lra. }
    replace (IZR 8421376 * bpow radix2 (1 - 24)) with (1 + / 2 ^ 8) by (simpl; lra).
    rewrite (rounded_in_1_2 _ _ _ 128); [simpl; lra | lia | lia | lra |].
    unfold Znearest; replace (Zfloor _) with 128%Z by (symmetry; apply Zfloor_imp; simpl; lra).
    rewrite Rcompare_Eq by (simpl; lra); reflexivity.
Qed.
