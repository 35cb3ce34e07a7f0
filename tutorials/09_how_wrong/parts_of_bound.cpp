#include "tutorials/09_how_wrong/parts_of_bound.hpp"

#include <fmt/format.h>

#include <cmath>

#include "oracle/contract/accumulator.hpp"
#include "tutorials/09_how_wrong/worked_example.hpp"

namespace ringproof::tutorials {
namespace {

using oracle::Contract;
using oracle::DType;

/// The contract without any of its roundings, the output's excepted.
Contract without_roundings(Contract c) {
  const oracle::Accumulator exact;
  c.score.acc = exact;
  c.score.eta = c.score.scale_const_u = 0;
  c.score.scale_roundings = 0;
  c.softmax.u = c.softmax.exp_rel = c.softmax.exp_eta = 0;
  c.p.u = c.p.eta = 0;
  c.l = c.pv = {exact, 0, 0};
  c.finish.roundings = 0;
  return c;
}

/// One named part: copies its fields from one contract to another.
struct PartOfContract {
  const char* name;
  void (*take)(const Contract& from, Contract& to);
};

// [parts]
const std::vector<PartOfContract> kParts{
    {"q.k, constant of the scale",
     [](const Contract& from, Contract& to) {
       to.score = from.score;
       to.score.scale_roundings = 0;
     }},
    {"scaling, exponentials, rescales",
     [](const Contract& from, Contract& to) {
       to.score.scale_roundings = from.score.scale_roundings;
       to.softmax = from.softmax;
     }},
    {"the cast of P", [](const Contract& from, Contract& to) { to.p = from.p; }},
    {"the sum l", [](const Contract& from, Contract& to) { to.l = from.l; }},
    {"the sum P V", [](const Contract& from, Contract& to) { to.pv = from.pv; }},
    {"the division", [](const Contract& from, Contract& to) { to.finish = from.finish; }},
};
// [/parts]

/// What storing the exact answer may cost at most: half the distance of its two neighbours.
double half_spacing(DType type) {
  return (oracle::round_up(type, exact()) - oracle::round_down(type, exact())) / 2;
}

void print_parts_of(const std::string& preset) {
  const Contract declared = example().contract(preset);
  fmt::print("{}\n", preset);
  double sum = 0;
  for (const PartOfContract& part : kParts) {
    Contract alone = without_roundings(declared);
    part.take(declared, alone);
    const double bound = example().bound(alone).out[0];
    sum += bound;
    fmt::print("  {:<32} {:>10.3g}\n", part.name, bound);
  }
  const double whole = example().bound(declared).out[0];
  fmt::print("  {:<32} {:>10.3g}   sum of the parts / bound = {:.5f}\n", "bound before the output",
             whole, sum / whole);
  fmt::print("  {:<32} {:>10.3g}\n", "storing the output", half_spacing(declared.out.dtype));
}

}  // namespace

void print_formats() {
  fmt::print("exact answer {:.9f}\n", exact());
  fmt::print(
      "format  digits        u     number below  number above  nearest is off by, in u |o|\n");
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3}) {
    const oracle::Format& format = oracle::format_of(type);
    const double error = std::fabs(oracle::round_nearest(type, exact()) - exact());
    fmt::print("{:<7} {:>6} {:>8}   {:>14.9f} {:>13.9f} {:>15.2f}\n", oracle::name(type),
               format.digits, fmt::format("2^-{}", format.digits),
               oracle::round_down(type, exact()), oracle::round_up(type, exact()),
               error / (format.unit() * exact()));
  }
}

void print_cast() {
  fmt::print("key j  s_j    w_j = exp(s_j - 3)   in bf16      relative error, in u\n");
  const double u = oracle::format_of(DType::bf16).unit();
  double l = 0, o = 0;
  for (std::size_t j = 0; j < kScores.size(); ++j) {
    const double w = std::exp(kScores[j] - 3), cast = oracle::round_nearest(DType::bf16, w);
    fmt::print("{:>5} {:>4} {:>21.9f} {:>11.9f} {:>12.2f}\n", j, kScores[j], w, cast,
               (cast - w) / w / u);
    l += w;
    o += cast * kValues[j];
  }
  fmt::print("l = {:.6f}   o = {:.6f}   o / l = {:.6f}, off by {:.6f}\n", l, o, o / l,
             o / l - exact());
}

// [hand]
/// The bound of a kernel that rounds nothing but the weights it multiplies with the values: (21) of
/// docs/contract.md, in which all that is left is a sum over the keys.
double bound_of_the_cast(double u) {
  double l = 0, bound = 0;
  for (const double s : kScores) l += std::exp(s - 3);
  for (std::size_t j = 0; j < kScores.size(); ++j) {
    const double p = std::exp(kScores[j] - 3) / l;
    const double cast = kScores[j] == 3 ? 0 : -std::log1p(-u);  // the weight 1 is a number of bf16
    bound += p * std::expm1(cast) * std::fabs(kValues[j]);
  }
  return bound;
}
// [/hand]

void print_hand() {
  const double u = oracle::format_of(DType::bf16).unit();
  const Contract declared = example().contract("bf16-flash");
  Contract only_cast = without_roundings(declared);
  only_cast.p = declared.p;
  fmt::print("by hand       {:.10f}\n", bound_of_the_cast(u));
  fmt::print("by the judge  {:.10f}\n", example().bound(only_cast).out[0]);
  const double off = kernel(DType::bf16, DType::f32) - exact();
  fmt::print("the cast of the table is off by {:.10f}, {:.0f} % of it\n", std::fabs(off),
             100 * std::fabs(off) / bound_of_the_cast(u));
}

void print_parts() {
  print_parts_of("fp32");
  fmt::print("\n");
  print_parts_of("bf16-flash");
}

}  // namespace ringproof::tutorials
