# The argument reduction of exp in double-double (oracle/truth/exp_dd-inl.hpp), proved by Gappa.
#
# In words.  x = xh + xl with |xl| <= 2^-53 |xh| and 2^-8 <= |xh| <= 700.  The program rounds
# 64 x / ln 2 to an integer k by adding and subtracting 1.5 2^52, and takes k ln2/64 off x in three
# steps.  What remains is the pair r + rl, with |r| <= 0.00542, |rl| <= 2^-60, and
#
#     |(r + rl) - (x - k ln2/64)| <= 1.125 2^-105 |xh|.
#
# C1 and C2 have 33 bits, so k C1, k C2 and xh - k C1 are exact: proved here, not assumed.
# Assumed: the low word of TwoSum is the error of its sum (ErrorFree.v), and how close C1 + C2 + C3
# comes to ln2/64 (ExpConstants.v).  For |xh| < 2^-8 see exp_reduction_near_zero.g.

@d = float<ieee_64, ne>;

xh = d(xh_);
xl = d(xh * h);                      # any double of at most 2^-53 |xh|
inv = 0x1.71547652b82fep+6;
C1 = 0x1.62e42ffp-7;  C2 = -0x1.718432a2p-41;  C3 = 0x1.3c7673007e5edp-75;
shift = 0x1.8p52;

s = d(xh * inv);
b = d(s + shift);
k = d(b - shift);
t = d(xh - k * C1);                  # fused: one rounding
m = d(k * -C2);
r0 = d(t + m);   e = t + m - r0;       # TwoSum
w = d(xl - k * C3);                  # fused
l0 = d(e + w);
r = d(r0 + l0);  rl = r0 + l0 - r;     # TwoSum

error = r + rl - (xh + xl - k * ln2_64);

{ ln2_64 - (C1 + C2 + C3) in [0, 1b-128] /\ |h| <= 1b-53 /\ |xh| in [1b-8, 700] ->
  |error / xh| <= 0x1.2p-105 /\ |r| <= 0.00542 /\ |rl| <= 1b-60 }

# The error of a step is its rounding and what it inherits.
k -> s + (b - (s + shift)) + (k - (b - shift));
k - s -> (b - (s + shift)) + (k - (b - shift));
xh - k * C1 -> xh * (1 - inv * C1) - (k - s) * C1 - (s - xh * inv) * C1;
error -> (l0 - (e + w)) + (w - (xl - k * C3)) + (t - (xh - k * C1)) + (m - k * -C2)
         + k * (ln2_64 - (C1 + C2 + C3));
e -> - (r0 - (t + m));
rl -> - (r - (r0 + l0));

# Two cases for each binade of xh: an error of half a unit weighs most at its lower end.
error / xh $ |xh| in (0x1.ep-8, 1b-7, 0x1.ep-7, 1b-6, 0x1.ep-6, 1b-5, 0x1.ep-5, 1b-4, 0x1.ep-4,
  1b-3, 0x1.ep-3, 1b-2, 0x1.ep-2, 1b-1, 0x1.ep-1, 1, 0x1.ep0, 2, 0x1.ep1, 4, 0x1.ep2, 8, 0x1.ep3,
  16, 0x1.ep4, 32, 0x1.ep5, 64, 0x1.ep6, 128, 0x1.ep7, 256, 0x1.ep8, 512, 600);
