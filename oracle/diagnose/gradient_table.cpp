#include "oracle/diagnose/gradient_table.hpp"

namespace ringproof::oracle {

void add(Mutants& mutants, const char* id, std::string words, int wrong, const Edit& edit,
         const char* also) {
  GradientMutant one{.id = id,
                     .words = std::move(words),
                     .also = also,
                     .dq = (wrong & kDq) != 0,
                     .dk = (wrong & kDk) != 0,
                     .dv = (wrong & kDv) != 0,
                     .dbias = (wrong & kDbias) != 0,
                     .dsinks = (wrong & kDsinks) != 0,
                     .rule = {}};
  edit(one.rule);
  mutants.push_back(std::move(one));
}

std::string names(int wrong) {
  constexpr const char* kNames[] = {"dq", "dk", "dv", "dbias", "dsinks"};
  std::vector<std::string> all;
  for (int n = 0; n < 5; ++n) {
    if ((wrong & 1 << n) != 0) all.emplace_back(kNames[n]);
  }
  std::string words;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (n > 0) words += n + 1 == all.size() ? " and " : ", ";
    words += all[n];
  }
  return words;
}

int judged_gradients(const Case& input) {
  int all = 0;
  const std::pair<AnswerKind, int> kKinds[] = {{AnswerKind::dq, kDq},
                                               {AnswerKind::dk, kDk},
                                               {AnswerKind::dv, kDv},
                                               {AnswerKind::dbias, kDbias},
                                               {AnswerKind::dsinks, kDsinks}};
  for (const auto& [kind, bit] : kKinds) all += input.find(kind) != nullptr ? bit : 0;
  return all;
}

std::vector<int> with_additions(const Case& input, int wrong, int additions) {
  const int judged = judged_gradients(input) & additions;
  std::vector<int> all{wrong};
  for (const int more : {kDbias, kDsinks, kDbias + kDsinks}) {
    if ((more & judged) == more) all.push_back(wrong + more);
  }
  return all;
}

void count_pairs(GradientRule& rule, int wrong, const GradientRule::Pair& counts) {
  if ((wrong & kDq) != 0) rule.counts_q = counts;
  if ((wrong & kDk) != 0) rule.counts_k = counts;
  if ((wrong & kDv) != 0) rule.counts_v = counts;
  const auto of_place = [counts](const PairPlace& at) { return counts(at.h, at.i, at.j); };
  if ((wrong & kDbias) != 0) rule.counts_bias = of_place;
  if ((wrong & kDsinks) != 0) rule.counts_sinks = of_place;
}

}  // namespace ringproof::oracle
