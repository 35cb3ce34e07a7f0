// Prints the table of docs/contract.md, section "power": what one long row could have refused.
//   power_bench [largest N, default 131072]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/unit/contract/long_rows.hpp"

using namespace ringproof;

int main(int argc, char** argv) {
  const std::int64_t largest = argc > 1 ? std::atoll(argv[1]) : 131072;
  test::LongRows rows;
  std::printf("%7s %-6s %-42s %10s %10s %10s %6s %6s %6s\n", "N", "family", "contract", "gain",
              "mass LSE", "mass out", "zeros", "mean", "ms");
  for (rows.next_length(); rows.length() <= largest; rows.next_length()) {
    const std::string N = std::to_string(rows.length());
    const std::string parts = std::to_string(rows.length() / 64);
    const std::string shard = std::to_string(rows.length() / 8);
    for (const auto family : test::kFamilies) {
      for (const std::string& name :
           {std::string("bf16-flash"), std::string("bf16-flash+block128+acc128"),
            "bf16-decode64+block128+acc128+keys" + parts, "bf16-ring8+block128+acc128+keys" + shard,
            std::string("fp32"), std::string("fp32+block64+acc64")}) {
        auto fixture = rows.row(family);
        if (name.find("ring") != std::string::npos) {
          fixture.problem.spec.ring = oracle::Ring{};  // contiguous shards
        }
        const auto contract = oracle::read_contract(name, oracle::Spec{});
        const auto start = std::chrono::steady_clock::now();
        const auto bound = fixture.bound(contract, true);
        const std::chrono::duration<double, std::milli> time =
            std::chrono::steady_clock::now() - start;
        const auto& power = bound.power;
        const auto share = [](std::int64_t pass, std::int64_t) {
          return 100.0 * static_cast<double>(pass) / 64;
        };
        std::printf("%7s %-6s %-42s %10.2g %10.2g %10.2g %6.0f %6.0f %6.1f\n", N.c_str(),
                    test::name(family).c_str(), name.c_str(), power.gain, power.missing_mass_lse,
                    power.missing_mass_out, share(power.zeros_pass, power.zeros_differ),
                    share(power.mean_pass, power.mean_differ), time.count());
      }
    }
  }
}
