# The argument reduction of exp_reduction.g for |xh| <= 2^-8: there k = 0, nothing is taken off x.
# That the remaining steps are then exact is proved in ExpDoubleDouble.v.

@d = float<ieee_64, ne>;

xh = d(xh_);
s = d(xh * 0x1.71547652b82fep+6);
b = d(s + 0x1.8p52);
k = d(b - 0x1.8p52);

{ |xh| <= 1b-8 -> k in [0, 0] }
