# The polynomial and the table of exp in double-double (oracle/truth/exp_dd-inl.hpp), by Gappa.
#
# In words.  R = r + rl is the reduced argument, |r| <= 0.00542, |rl| <= 2^-60.  E_n is the part of
# the Taylor series of degree 11 that Horner's rule has when the coefficient 1/n! has been added, in
# exact arithmetic; y_n + z_n is what the program has there.  Then
#
#     |y_0 + z_0 - E_0| <= 2^-105,
#
# and after the product with the table entry th + tl, |th + tl - T| <= 2^-106, 1 <= T <= 2,
#
#     |p + q - T E_0| <= 2^-102.
#
# Assumed: the low words f_n of FastTwoSum are the errors of their sums (ErrorFree.v; that the
# coefficient is the larger addend is the third line of the goal), and the table (ExpTable.v).  How
# far E_0 is from exp(R) is proved in ExpConstants.v, and ExpDoubleDouble.v joins all of it.

@d = float<ieee_64, ne>;             # d(a b + c) is a fused operation: one rounding

r  = d(r_);
rl = d(rl_);
R  = r + rl;

# The tail in plain binary64: 1/11! to 1/6!.
c11 = 0x1.ae64567f544e4p-26;  c10 = 0x1.27e4fb7789f5cp-22;  c9 = 0x1.71de3a556c734p-19;
c8  = 0x1.a01a01a01a01ap-16;  c7  = 0x1.a01a01a01a01ap-13;  c6 = 0x1.6c16c16c16c17p-10;
q10 = d(c11 * r + c10);  q9 = d(q10 * r + c9);  q8 = d(q9 * r + c8);  q7 = d(q8 * r + c7);
q6  = d(q7 * r + c6);
T11 = 1 / 39916800;
T10 = T11 * R + 1 / 3628800;  T9 = T10 * R + 1 / 362880;  T8 = T9 * R + 1 / 40320;
T7  = T8 * R + 1 / 5040;      T6 = T7 * R + 1 / 720;

# 1/5!: a product in one word.
c5 = 0x1.1111111111111p-7;  l5 = 0x1.1111111111111p-63;
a5 = d(r * q6);
y5 = d(c5 + a5);  f5 = c5 + a5 - y5;  z5 = d(f5 + l5);
E5 = R * T6 + 1 / 120;

# 1/4! to 1: a = r y, b its error, h the low word of the product, f the error of the sum.
c4 = 0x1.5555555555555p-5;  l4 = 0x1.5555555555555p-59;
a4 = d(r * y5);   b4 = d(r * y5 - a4);  g4 = d(r * z5 + b4);  h4 = d(rl * y5 + g4);
k4 = d(h4 + l4);
y4 = d(c4 + a4);  f4 = c4 + a4 - y4;  z4 = d(f4 + k4);
E4 = R * E5 + 1 / 24;

c3 = 0x1.5555555555555p-3;  l3 = 0x1.5555555555555p-57;
a3 = d(r * y4);   b3 = d(r * y4 - a3);  g3 = d(r * z4 + b3);  h3 = d(rl * y4 + g3);
k3 = d(h3 + l3);
y3 = d(c3 + a3);  f3 = c3 + a3 - y3;  z3 = d(f3 + k3);
E3 = R * E4 + 1 / 6;

a2 = d(r * y3);    b2 = d(r * y3 - a2);  g2 = d(r * z3 + b2);  h2 = d(rl * y3 + g2);
y2 = d(0.5 + a2);  f2 = 0.5 + a2 - y2;  z2 = d(f2 + h2);
E2 = R * E3 + 1 / 2;

a1 = d(r * y2);  b1 = d(r * y2 - a1);  g1 = d(r * z2 + b1);  h1 = d(rl * y2 + g1);
y1 = d(1 + a1);  f1 = 1 + a1 - y1;  z1 = d(f1 + h1);
E1 = R * E2 + 1;

a0 = d(r * y1);  b0 = d(r * y1 - a0);  g0 = d(r * z1 + b0);  h0 = d(rl * y1 + g0);
y0 = d(1 + a0);  f0 = 1 + a0 - y0;  z0 = d(f0 + h0);
E0 = R * E1 + 1;

# The table entry.
th = d(th_);  tl = d(tl_);
p = d(th * y0);  b = d(th * y0 - p);  g = d(th * z0 + b);  q = d(tl * y0 + g);

{ |r| <= 0.00542 /\ |rl| <= 1b-60
  /\ T in [1, 2] /\ th in [1, 2] /\ |tl| <= 1b-53 /\ |th + tl - T| <= 1b-106 ->
  |y0 + z0 - E0| <= 1b-105 /\ |p + q - T * E0| <= 1b-102
  /\ |a5| <= 1b-7 /\ |a4| <= 1b-5 /\ |a3| <= 1b-3 /\ |a2| <= 1b-1 /\ |a1| <= 1 /\ |a0| <= 1
  /\ p in [0.99, 2.02] /\ |q| <= 1b-50 }

# The error of a step is its roundings, and R times the error that it inherits.
q10 - T10 -> (q10 - (c11 * r + c10)) + (c10 - 1/3628800) + r * (c11 - T11) - rl * T11;
q9 - T9 -> (q9 - (q10 * r + c9)) + (c9 - 1/362880) + r * (q10 - T10) - rl * T10;
q8 - T8 -> (q8 - (q9 * r + c8)) + (c8 - 1/40320) + r * (q9 - T9) - rl * T9;
q7 - T7 -> (q7 - (q8 * r + c7)) + (c7 - 1/5040) + r * (q8 - T8) - rl * T8;
q6 - T6 -> (q6 - (q7 * r + c6)) + (c6 - 1/720) + r * (q7 - T7) - rl * T7;
y5 + z5 - E5 -> (z5 - (f5 + l5)) + (c5 + l5 - 1/120) + (a5 - r * q6) + r * (q6 - T6) - rl * T6;
y4 + z4 - E4 -> (z4 - (f4 + k4)) + (k4 - (h4 + l4)) + (h4 - (rl * y5 + g4))
                + (g4 - (r * z5 + b4)) + (b4 - (r * y5 - a4))
                + (c4 + l4 - 1/24) - rl * z5 + R * (y5 + z5 - E5);
y3 + z3 - E3 -> (z3 - (f3 + k3)) + (k3 - (h3 + l3)) + (h3 - (rl * y4 + g3))
                + (g3 - (r * z4 + b3)) + (b3 - (r * y4 - a3))
                + (c3 + l3 - 1/6) - rl * z4 + R * (y4 + z4 - E4);
y2 + z2 - E2 -> (z2 - (f2 + h2)) + (h2 - (rl * y3 + g2))
                + (g2 - (r * z3 + b2)) + (b2 - (r * y3 - a2)) - rl * z3
                + R * (y3 + z3 - E3);
y1 + z1 - E1 -> (z1 - (f1 + h1)) + (h1 - (rl * y2 + g1))
                + (g1 - (r * z2 + b1)) + (b1 - (r * y2 - a1)) - rl * z2
                + R * (y2 + z2 - E2);
y0 + z0 - E0 -> (z0 - (f0 + h0)) + (h0 - (rl * y1 + g0))
                + (g0 - (r * z1 + b0)) + (b0 - (r * y1 - a0)) - rl * z1
                + R * (y1 + z1 - E1);
p + q - T * E0 -> (q - (tl * y0 + g)) + (g - (th * z0 + b)) + (b - (th * y0 - p)) - tl * z0
                  + (th + tl - T) * (y0 + z0) + T * (y0 + z0 - E0);

# f is minus the rounding error of its sum; b is that of its product, and its own.
f5 -> - (y5 - (c5 + a5));  f4 -> - (y4 - (c4 + a4));  f3 -> - (y3 - (c3 + a3));
f2 -> - (y2 - (0.5 + a2));  f1 -> - (y1 - (1 + a1));  f0 -> - (y0 - (1 + a0));
r * y5 - a4 -> - (a4 - r * y5);  r * y4 - a3 -> - (a3 - r * y4);  r * y3 - a2 -> - (a2 - r * y3);
r * y2 - a1 -> - (a1 - r * y2);  r * y1 - a0 -> - (a0 - r * y1);  th * y0 - p -> - (p - th * y0);
