// One mistake against the stored answers, row by row, until an element refutes it.
#pragma once

#include <set>
#include <string>

#include "oracle/diagnose/mutant.hpp"
#include "oracle/judge/check.hpp"

namespace ringproof::oracle {

/// The answers that are compared, and how they are stored.
struct JudgedAnswers {
  const Tensor* out = nullptr;  // [B, H, Nq, Dv]; nullptr: not judged
  const Tensor* lse = nullptr;  // [B, H, Nq, 1]; nullptr: not judged
  OutputRule out_rule;
};
JudgedAnswers judged_answers(const Case&, const Contract&, const Report&);

/// One number that is fitted to an answer explains nothing unless it holds for several others: the
/// fewest refused elements for which a factor of their own is tried, two beyond the factor.
constexpr std::int64_t kFewestForFactor = 1 + 2;

/// An LSE in the contract's base, and how it is rounded to the type that stores it.
struct StoredLse {
  Expected expected;
  OutputRule rule;
};
StoredLse stored_lse(const Expected& natural, const Contract&, DType stored);

/// True if a kernel with the mistake cannot return this number.
bool refutes(double answer, const Expected&, const OutputRule&);
bool refutes_lse(double answer, const Expected& natural, const Contract&, DType stored);

/// An element of out (or of the LSE) that the truth's box refuses, and what would be right there.
struct RefusedElement {
  bool of_lse = false;
  Row row;
  std::int64_t column = 0;
  double right = 0;
};

/// What the rows compared so far say about one mutant.
class Comparison {
 public:
  bool refuted() const { return refuted_; }
  std::int64_t elements() const { return elements_; }
  std::int64_t open() const { return open_; }
  /// Which form of the LSE is left; the first one in the mutant's own order.
  std::string lse_words() const;
  void add_out(const JudgedAnswers&, const Row&, const ExpectedRow&);
  void add_lse(const JudgedAnswers&, const Row&, const ExpectedRow&, const Contract&);
  /// Notes whether the mutant's box leaves out the truth at an element that the truth's box
  /// refuses: a form that would accept the right answer everywhere explains nothing.
  void compare_with_truth(const JudgedAnswers&, const RefusedElement&, const ExpectedRow&,
                          const Contract&);
  /// Of several forms of the LSE the one that is left has to tell.
  bool tells_from_truth() const;
  /// The mutant never writes this row of out, or of the LSE.
  void leave_open(const Row& row, bool of_lse) { (of_lse ? open_lse_ : open_out_).push_back(row); }
  /// Rows of which it says nothing, in whole or in part.
  const std::vector<Row>& open_out() const { return open_out_; }
  const std::vector<Row>& open_lse() const { return open_lse_; }
  void refute() { refuted_ = true; }

 private:
  bool tells_ = false;
  bool refuted_ = false;
  std::int64_t elements_ = 0, open_ = 0;
  std::vector<Row> open_out_, open_lse_;
  std::vector<std::string> forms_;  // of the LSE, in the mutant's order
  std::set<std::string> refuted_forms_, telling_forms_;
};

}  // namespace ringproof::oracle
