// Exercise 09: judge one number. The exact value lies somewhere in [o - r, o + r]. A kernel of the
// contract may be off by e before it rounds its answer to so many significant binary digits, to
// nearest. Everything between the marks is yours; the rest is the check. All numbers are small
// multiples of powers of two, so that your sums and differences are exact.
#include <cmath>
#include <limits>
#include <string>

#include "tutorials/support/check.hpp"

using ringproof::tutorials::Check;

struct Exact {
  double o, r;
};

/// The number of `digits` significant binary digits nearest to x; ties go to the even one.
double round_to(int digits, double x) {
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);  // in [1/2, 1)
  return std::ldexp(std::nearbyint(std::ldexp(significand, digits)), exponent - digits);
}

/// "FAIL" if no kernel of the contract returns this answer, wherever in its interval the exact
/// value lies; "PASS" if the answer is within the bound, wherever it lies; else "UNDECIDED".
std::string judge(double answer, Exact exact, double e, int digits) {
  // [answer]
  //? // Your turn. Which numbers can a conforming kernel return at least, and at most?
  //? return "UNDECIDED";
  const double low = round_to(digits, exact.o - e - exact.r);
  const double high = round_to(digits, exact.o + e + exact.r);
  if (!(low <= answer && answer <= high)) return "FAIL";  // an answer that is no number, too
  const double surely_low = round_to(digits, exact.o - e + exact.r);
  const double surely_high = round_to(digits, exact.o + e - exact.r);
  return surely_low <= answer && answer <= surely_high ? "PASS" : "UNDECIDED";
  // [/answer]
}

/// Would the judge have noticed a kernel that answers 0, and one that answers twice the truth?
bool has_power(Exact exact, double e, int digits) {
  // [answer]
  //? // Your turn: one line, with judge().
  //? return false;
  return judge(0, exact, e, digits) == "FAIL" &&
         judge(round_to(digits, 2 * exact.o), exact, e, digits) == "FAIL";
  // [/answer]
}

int main() {
  Check check("09");
  const double ulp = 0x1p-6;  // of bf16 around 2.625, which has eight digits
  const Exact point{2.625, 0};
  check.equal("the exact answer itself", judge(2.625, point, 0, 8), std::string("PASS"));
  check.equal("its neighbour, where nothing may err", judge(2.625 + ulp, point, 0, 8),
              std::string("FAIL"));
  check.equal("its neighbour, where the kernel may err by a third of the distance",
              judge(2.625 + ulp, point, ulp / 3, 8), std::string("FAIL"));
  check.equal("its neighbour, where the kernel may err by three quarters of the distance",
              judge(2.625 + ulp, point, 0.75 * ulp, 8), std::string("PASS"));
  check.equal("exactly on the edge: half the distance, and the tie goes to the even neighbour",
              judge(2.625 + ulp, point, ulp / 2, 8), std::string("FAIL"));
  check.equal("the same from a neighbour that is even itself",
              judge(2.625, {2.625 + ulp, 0}, ulp / 2, 8), std::string("PASS"));
  check.equal("below the exact answer", judge(2.625 - ulp, point, 0.75 * ulp, 8),
              std::string("PASS"));
  check.equal("an answer that is no number",
              judge(std::numeric_limits<double>::quiet_NaN(), point, 1, 8), std::string("FAIL"));
  check.equal("more than the bound away, and still what the kernel returns once it has rounded",
              judge(2.625, {2.625 + ulp / 4, 0}, 0, 8), std::string("PASS"));
  check.equal("the exact value is not known well enough",
              judge(2.625 + ulp, {2.625, ulp / 8}, 0.45 * ulp, 8), std::string("UNDECIDED"));
  check.equal("not known well, and still decided",
              judge(2.625 + 2 * ulp, {2.625, ulp / 8}, 0.45 * ulp, 8), std::string("FAIL"));
  check.holds("a small bound has power", has_power(point, ulp, 8));
  check.holds("a bound beyond the answer has none", !has_power({2.625, 0}, 3, 8));
  check.holds("one that refuses 0 but not twice the truth has none",
              !has_power({1, 0}, 0x1.ffp-1, 8));
  check.holds("enough power for zeros of negative answers", has_power({-1, 0}, 0.25, 8));
  return check.finish();
}
