// A tolerance rule as a test suite writes it, and what it says of an answer beside the exact one.
// It is judged here, never used to judge: nothing in this folder decides about a kernel.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "oracle/case/case_file.hpp"
#include "oracle/generate/recipe.hpp"

namespace ringproof::oracle {

/// One condition on one tensor. Its ratio is what is measured over what is allowed: accepted is at
/// most 1.
struct Comparison {
  enum class Kind {
    close,        // |answer - exact| <= atol + rtol |exact|, for all but a fraction of the elements
    error_ratio,  // max |answer - exact| <= factor * max |low precision - exact| + atol
    cosine,       // 1 - cosine of the angle <= limit
    rmse,         // root of the mean square of answer - exact <= limit
    nmse,         // sum of squares of answer - exact <= limit * sum of squares of exact
  };
  Kind kind = Kind::close;
  double atol = 0, rtol = 0, fraction = 0, factor = 0, limit = 0;
};

/// Measured over allowed; infinity if the answer holds a NaN, or if something is measured where
/// nothing is allowed.
double ratio_of(const Comparison&,
                std::span<const double> answer,          // [n]
                std::span<const double> exact,           // [n]
                std::span<const double> low_precision);  // [n], or empty where it is not needed

/// The inputs on which a suite applies the rule.
struct RuleInputs {
  enum class Distribution { normal, uniform, clamped };  // normal numbers cut off at -1 and 1
  Recipe recipe;
  Distribution distribution = Distribution::normal;
  double factor = 1;
  bool upstream_ones = false;  // dout is 1 everywhere, else drawn as the inputs are
  std::int64_t ranks = 1;
};

struct Rule {
  std::string name;
  std::string project, file, version, note;  // where it stands
  std::map<AnswerKind, std::vector<Comparison>>
      compares;  // tensors that are looked at, all of them
  RuleInputs inputs;

  bool needs_low_precision() const;
  bool compares_gradients() const;
};

/// Throws BadInput naming the key. `origin` is for messages.
Rule read_rule(const nlohmann::json&, const std::string& origin);

/// The rules of public projects, rules.json.
const std::vector<Rule>& public_rules();

}  // namespace ringproof::oracle
