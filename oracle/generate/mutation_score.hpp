// The certified mutation score of a suite: for each contract, which classes of mistakes at least
// one case provably refuses (37). A form that is killed once is not looked at again; one that never
// is has been compared on every case of its type, and the score says how near it came.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringproof::oracle {

/// One form of a class over all cases.
struct FormScore {
  bool killed = false, differs = false;
  double margin = 0;  // largest over the cases while it was not killed
  std::string untold;
};

struct ContractScore {
  std::string contract;
  std::int64_t cases = 0;
  std::map<std::string, std::map<std::string, FormScore>> classes;  // by id, by words
  std::map<std::string, FormScore> also;  // classes that other classes' forms belong to

  std::int64_t forms(const std::string& id) const;   // that change an answer
  std::int64_t killed(const std::string& id) const;  // forms
};

struct ScoreOptions {
  std::uint64_t seed = 1;
  int forms_per_class = 24;  // of those not yet killed, on each case
  int threads = 0;
  std::function<void(std::int64_t, std::int64_t)> progress;
};

/// The loosest contract of each type in the suite, in the order of their first case. Only cases
/// that the suite holds count, as it holds them. The result does not depend on the number of
/// threads.
std::vector<ContractScore> mutation_score(std::string_view suite, const ScoreOptions&);

/// Several lines: per contract the classes killed, and every class and form that is not, with the
/// reason.
std::string to_text(const std::vector<ContractScore>&);

/// The forms killed and looked at of every fault of the notes under each contract, as a table, and
/// why a fault has no certificate.
std::string to_table(const std::vector<ContractScore>&);
/// Twelve digits of a digest of all tensors of the suite, which date a table.
std::string digest_of(std::string_view suite, std::uint64_t seed);

}  // namespace ringproof::oracle
