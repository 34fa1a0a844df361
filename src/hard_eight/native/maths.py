"""Sine and cosine out of plain arithmetic: the C library's differ between machines."""

from .jit import shared

_HALF_PI_HIGH, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
_TWO_OVER_PI = 0.6366197723675814


@shared
def sine_cosine(angle):
    """Sine and cosine of an angle in radians, to about 1e-16 for angles of a few turns."""
    quarter = int(angle * _TWO_OVER_PI + (0.5 if angle >= 0.0 else -0.5))
    x = (angle - quarter * _HALF_PI_HIGH) - quarter * _HALF_PI_LOW
    z = x * x
    s = x + x * z * (
        -1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (
            -1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (
                -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))))  # fmt: skip
    c = 1.0 - 0.5 * z + z * z * (
        4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (
            2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (
                2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))))  # fmt: skip
    turn = quarter & 3
    if turn == 0:
        return s, c
    if turn == 1:
        return c, -s
    if turn == 2:
        return -s, -c
    return -c, s


@shared
def multiply(aw, ax, ay, az, bw, bx, by, bz):
    """Product of two quaternions."""
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@shared
def rotate(qw, qx, qy, qz, x, y, z):
    """A vector turned by a unit quaternion."""
    tx = 2.0 * (qy * z - qz * y)
    ty = 2.0 * (qz * x - qx * z)
    tz = 2.0 * (qx * y - qy * x)
    return (
        x + qw * tx + qy * tz - qz * ty,
        y + qw * ty + qz * tx - qx * tz,
        z + qw * tz + qx * ty - qy * tx,
    )
