// All mistakes that are mathematical functions, the likeliest forms of a class first: explain tries
// them, generated cases are certified against them, and tolerance rules are audited with them.
#pragma once

#include "oracle/diagnose/mutant.hpp"

namespace ringproof::oracle {

/// Pointers inside refer to the subject, which must outlive the result.
inline Families mutant_catalogue(const Subject& subject) {
  Families families;
  add_mask_classes(subject, families);
  add_score_classes(subject, families);
  add_bias_classes(subject, families);
  add_head_classes(subject, families);
  add_answer_classes(subject, families);
  add_place_classes(subject, families);
  add_key_classes(subject, families);
  add_ring_classes(subject, families);
  add_softmax_classes(subject, families);
  return families;
}

}  // namespace ringproof::oracle
