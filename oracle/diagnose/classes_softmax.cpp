// Mistakes of the online softmax and of merging within one device: RESCALE-O, RESCALE-L, STALE-MAX,
// NORM-AVERAGE, LSE-BASE in merge weights, MERGE-OVERFLOW, EMPTY-MERGE.
#include "oracle/diagnose/combine.hpp"
#include "oracle/diagnose/online_table.hpp"
#include "oracle/diagnose/table.hpp"

namespace ringproof::oracle {

void add_online_rules(Family& family, const std::string& where, bool descending) {
  using Factor = OnlineRule::Factor;
  using Reference = OnlineRule::Reference;
  struct Line {
    const char* id;
    const char* words;
    Factor o, l;
    Reference reference = Reference::running;
    const char* also = "";
    bool lse_from_first = false;
  };
  const Line lines[] = {
      {"RESCALE-O", "o is never rescaled", Factor::none, Factor::right},
      {"RESCALE-L", "l is never rescaled", Factor::right, Factor::none},
      {"RESCALE-O", "neither o nor l is rescaled", Factor::none, Factor::none, Reference::running,
       "RESCALE-L"},
      {"RESCALE-O", "o is multiplied by the inverse factor", Factor::inverse, Factor::right},
      {"RESCALE-L", "l is multiplied by the inverse factor", Factor::right, Factor::inverse},
      {"RESCALE-O", "o and l are multiplied by the inverse factor", Factor::inverse,
       Factor::inverse, Reference::running, "RESCALE-L"},
      {"RESCALE-O", "o is not rescaled in the last step", Factor::none_at_last, Factor::right},
      {"RESCALE-L", "l is not rescaled in the last step", Factor::right, Factor::none_at_last},
      {"RESCALE-O", "neither is rescaled in the last step", Factor::none_at_last,
       Factor::none_at_last, Reference::running, "RESCALE-L"},
      {"STALE-MAX", "o is rescaled by the factor of the step before", Factor::late, Factor::right,
       Reference::running, "RESCALE-O"},
      {"STALE-MAX", "l is rescaled by the factor of the step before", Factor::right, Factor::late,
       Reference::running, "RESCALE-L"},
      {"STALE-MAX", "both are rescaled by the factor of the step before", Factor::late,
       Factor::late},
      {"STALE-MAX", "factors from the tiles' own maxima", Factor::of_tiles, Factor::of_tiles},
      {"STALE-MAX", "factors and weights from the tiles' own maxima", Factor::of_tiles,
       Factor::of_tiles, Reference::tile},
      {"STALE-MAX", "factor of o from the tiles' own maxima", Factor::of_tiles, Factor::right},
      {"STALE-MAX", "the old maximum is never stored: the old state is lost", Factor::zero,
       Factor::zero, Reference::tile},
      {"STALE-MAX", "the old output is lost", Factor::zero, Factor::right},
      {"STALE-MAX", "the old row sum is lost", Factor::right, Factor::zero},
      {"STALE-MAX", "weights refer to the tile's own maximum", Factor::right, Factor::right,
       Reference::tile, "RESCALE-O"},
      {"STALE-MAX", "weights refer to the maximum of the step before", Factor::right, Factor::right,
       Reference::previous},
      {"STALE-MAX", "weights refer to the tile's own maximum, nothing is rescaled", Factor::none,
       Factor::none, Reference::tile, "RESCALE-O"},
      {"STALE-MAX", "the maximum stays what it was, nothing is rescaled", Factor::none,
       Factor::none, Reference::previous},
      {"STALE-MAX", "the maximum is not updated in the last step", Factor::none_at_last,
       Factor::none_at_last, Reference::previous_at_last},
      {"STALE-MAX", "the new maximum is never stored back", Factor::from_first, Factor::from_first,
       Reference::first_or_tile, "", true}};
  for (const Line& line : lines) {
    add(family, line.id, line.words + where, online({line.reference, line.o, line.l, descending}),
        line.also);
  }
}

void add_merge_rules(Family& family, const std::string& where) {
  const auto line = [&](const char* id, const char* words, MergeRule rule, const char* also = "") {
    add(family, id, words + where, merged(rule), also);
  };
  line("NORM-AVERAGE", "normalised parts are averaged over those with a visible key",
       MergeRule::average_present);
  line("NORM-AVERAGE", "normalised parts are averaged over all of them", MergeRule::average_all);
  line("NORM-AVERAGE", "normalised parts are added", MergeRule::sum, "RESCALE-O");
  line("LSE-BASE", "parts are weighed by 2^lse", MergeRule::base_two);
  line("LSE-BASE", "parts are weighed by e^(lse log2 e)", MergeRule::log2_as_natural);
  line("MERGE-WEIGHT", "the weights of old and new are exchanged in every merge",
       MergeRule::exchanged);
  line("MERGE-OVERFLOW", "exp(lse) leaves the range of its type", MergeRule::without_maximum);
  line("RESCALE-O", "numerators are added as if all maxima were equal", MergeRule::unscaled,
       "RESCALE-L");
  line("RING-STALE", "only the first part counts", MergeRule::first, "BLOCK-SKIP");
  line("RING-STALE", "only the last part counts", MergeRule::last, "BLOCK-SKIP");
  line("NORM-AVERAGE", "normalised parts are averaged by their numbers of visible keys",
       MergeRule::average_by_keys);
  line("MERGE-ALIAS", "the old lse is overwritten before it is used", MergeRule::aliased,
       "MERGE-WEIGHT");
  line("MERGE-OVERFLOW", "log(1 + exp(new - old)) overflows", MergeRule::exp_of_difference);
  line("EMPTY-MERGE", "(-inf) - (-inf) where the first part is empty",
       MergeRule::empty_first_is_nan, "FIRST-TILE-EMPTY, EMPTY-RANK");
  line("EMPTY-MERGE", "(-inf) - (-inf) where the last part is empty", MergeRule::empty_last_is_nan,
       "FIRST-TILE-EMPTY, EMPTY-RANK");
  line("EMPTY-MERGE", "NaN wherever a part is empty", MergeRule::any_empty_is_nan, "EMPTY-RANK");
  line("EMPTY-MERGE", "an empty part has the lse 0", MergeRule::empty_weighs_one, "EMPTY-RANK");
}

void add_softmax_classes(const Subject& subject, Families& families) {
  for (auto& [size, family] : tiled_families(subject.problem().keys)) {
    const std::string where = tiles_of(size);
    add_online_rules(family, where, false);
    add_online_rules(family, " (tiles of " + std::to_string(size) + ", last to first)", true);
    add_merge_rules(family, where);
    families.push_back(std::move(family));
  }
}

}  // namespace ringproof::oracle
