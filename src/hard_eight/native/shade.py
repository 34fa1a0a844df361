"""The second half of the rasteriser: from depth and face buffers to colours; see `raster`.

Every pixel is shaded once, in runs of one face along a row, so that all that depends on the face
only (its colour, mip level, outline width) is worked out once per run.
"""

import math

import numpy as np

from .jit import inlined, lean

# Bits of a drawing table's `flags`.
VISIBLE = 1
OUTLINED = 2
CASTS_SHADOW = 4
FLOOR = 8

SPHERE, CAPSULE, CYLINDER, BOX = 2, 3, 5, 6  # MuJoCo's geom types
CURVED_FACE = 6  # faces 0-5 are +x -x +y -y +z -z, 6 any curved surface
TOP_FACE = 4

f4 = np.float32
ZERO, HALF, ONE, TWO = f4(0), f4(0.5), f4(1), f4(2)
WHITE = f4(255)

# Light on a surface is AMBIENT + normal . SUN. The parts of SUN differ enough that every two
# neighbouring faces of an upright box can be told apart.
AMBIENT = f4(0.84)
SUN_X, SUN_Y, SUN_Z = f4(0.13), f4(0.06), f4(0.16)

# Haze: a share 1 - HAZE_PER_METRE * depth of a thing's own colour is left, at least CLEAREST_FAR.
HAZE_PER_METRE, CLEAREST_FAR = f4(0.018), f4(0.5)
HAZE = (f4(150), f4(162), f4(178))

# What is seen where nothing is: pale to blue above the horizon, darkening below it, so that a
# drop into the void looks like one.
ZENITH = (f4(92), f4(138), f4(196))
HORIZON = (f4(188), f4(206), f4(222))
BRINK = (f4(64), f4(72), f4(92))
ABYSS = (f4(24), f4(27), f4(40))

OUTLINE_LIGHT = f4(0.4)
OUTLINE_PIXELS, OUTLINE_METRES = f4(1.1), f4(0.015)
OUTLINE_SHARE = f4(0.3)  # of a face's half side, at most: far things keep their colour

FARTHEST = f4(1e-3)  # 1/m; nothing is drawn beyond 1 km
QUARTER_TURN = f4(1.5707964)

RUN = 32  # pixels; perspective changes little enough along this for one mip level
SIDE, LEVELS = 64, 7  # texels per metre and mip levels, as in `textures`
TEXELS, COARSEST = f4(SIDE), LEVELS - 1
WRAP = f4(1024)  # m; added to texture coordinates so that truncation rounds down


@lean
def half_extents(kind, size):
    """Half sides of the box around a geom, in its own frame."""
    if kind == BOX:
        return size[0], size[1], size[2]
    if kind == CYLINDER:
        return size[0], size[0], size[1]
    if kind == CAPSULE:
        return size[0], size[0], size[0] + size[1]
    return size[0], size[0], size[0]


@inlined
def clamp(value, least, most):
    return min(max(value, least), most)


@inlined
def lit(color, g, light):
    return (
        clamp(color[g, 0] * light, ZERO, WHITE),
        clamp(color[g, 1] * light, ZERO, WHITE),
        clamp(color[g, 2] * light, ZERO, WHITE),
    )


@inlined
def paint(out, j, q, color, lum, clear):
    """Store lum * color (0 to 255), of which the share `clear` is seen through the haze."""
    haze, own = ONE - clear, lum * clear
    out[j, q, 0] = np.uint8(color[0] * own + HAZE[0] * haze)
    out[j, q, 1] = np.uint8(color[1] * own + HAZE[1] * haze)
    out[j, q, 2] = np.uint8(color[2] * own + HAZE[2] * haze)


@inlined
def measure_row(j, scratch):
    """Depth in metres and share of colour left by the haze, for a whole row."""
    metres, clear, depth = scratch.metres, scratch.clear, scratch.depth
    for q in range(np.uint64(metres.size)):
        metres[q] = ONE / max(depth[j, q], FARTHEST)
        clear[q] = max(CLEAREST_FAR, ONE - HAZE_PER_METRE * metres[q])


@inlined
def shade_nothing(i, j, stop, cam_mat, pixel, out):
    """Sky above the horizon, abyss below. `rise` is the slope of a ray of unit depth."""
    height, width = out.shape[0], out.shape[1]
    across, up, ahead = f4(cam_mat[6]) * pixel, f4(cam_mat[7]) * pixel, -f4(cam_mat[8])
    start = ahead + (HALF - HALF * f4(width)) * across
    start += (HALF * f4(height) - HALF - f4(j)) * up
    for q in range(np.uint64(i), np.uint64(stop)):
        rise = start + across * f4(np.int32(q))
        share = min(ONE, rise if rise > ZERO else TWO * -rise)
        for c in range(3):
            near = HORIZON[c] if rise > ZERO else BRINK[c]
            far = ZENITH[c] if rise > ZERO else ABYSS[c]
            out[j, q, c] = np.uint8(near + (far - near) * share)


@inlined
def mip_level(area, longest):
    """Level whose texels match a pixel's footprint of `area` m2 and squared length `longest`.

    Seen edge-on a footprint is long and thin: its area would pick too fine a level (flicker), its
    length too coarse a one (mud)."""
    texels = max(area, f4(0.25) * longest) * (TEXELS * TEXELS)
    level = 0
    while texels > f4(2.25) and level < COARSEST:
        texels *= f4(0.25)
        level += 1
    return level


@inlined
def border(half, step_square, outlined):
    """The coordinate beyond which a face of that half side is outline."""
    if not outlined:
        return f4(1e9)
    width = max(OUTLINE_METRES, OUTLINE_PIXELS * math.sqrt(step_square))
    return half - min(width, OUTLINE_SHARE * half)


@inlined
def detailed_flat(i, j, stop, axis, color, outlined, half, eye, ray, pattern, scratch, flat, out):
    """A run on a box's face, textured or outlined or both; `flat`: all textures in one row."""
    b = 1 if axis == 0 else 0
    c = 1 if axis == 2 else 2  # v runs upwards on side faces
    row, column = f4(j), f4((i + stop) >> 1)
    metres, clear = scratch.metres, scratch.clear
    start_u, start_v = ray[0][b] + ray[2][b] * row, ray[0][c] + ray[2][c] * row
    step_u, step_v, eye_u, eye_v = ray[1][b], ray[1][c], eye[b], eye[c]

    # How far (u, v) moves per pixel, in the middle of the run. With u = eye + d(i, j) * depth and
    # 1 / depth proportional to the ray's part along the face's normal, n(i, j):
    # du/di = depth * (dd/di - d * dn/di / n), likewise for j.
    depth = metres[(i + stop) >> 1]
    per_normal = ONE / (ray[0][axis] + ray[2][axis] * row + ray[1][axis] * column)
    tilt_i, tilt_j = ray[1][axis] * per_normal, ray[2][axis] * per_normal
    ray_u, ray_v = start_u + step_u * column, start_v + step_v * column
    u_i, u_j = depth * (step_u - ray_u * tilt_i), depth * (ray[2][b] - ray_u * tilt_j)
    v_i, v_j = depth * (step_v - ray_v * tilt_i), depth * (ray[2][c] - ray_v * tilt_j)
    u_square, v_square = u_i * u_i + u_j * u_j, v_i * v_i + v_j * v_j

    level = 0
    if pattern > 0:
        level = mip_level(abs(u_i * v_j - u_j * v_i), max(u_square, v_square))
    plane = np.uint64((pattern * LEVELS + level) * SIDE * SIDE)
    last, per_metre = np.int32((SIDE >> level) - 1), f4(SIDE >> level)
    wrap = WRAP * per_metre
    inner_u, inner_v = border(half[b], u_square, outlined), border(half[c], v_square, outlined)
    texel, dim = scratch.texel, scratch.dim
    for q in range(np.uint64(i), np.uint64(stop)):  # no texture is read here: this loop is SIMD
        t, x = metres[q], f4(np.int32(q))
        u, v = eye_u + t * (start_u + x * step_u), eye_v + t * (start_v + x * step_v)
        at_u, at_v = np.int32(u * per_metre + wrap) & last, np.int32(v * per_metre + wrap) & last
        texel[q] = at_v * np.int32(SIDE) + at_u
        within = max(abs(u) - inner_u, abs(v) - inner_v) < ZERO
        dim[q] = ONE if within else OUTLINE_LIGHT
    for q in range(np.uint64(i), np.uint64(stop)):
        lum = flat[plane + np.uint64(texel[q])] * dim[q]
        paint(out, j, q, color, lum, clear[q])


@inlined
def rim_width(t, pixel, most):
    return min(max(OUTLINE_METRES, OUTLINE_PIXELS * pixel * t), most)


@inlined
def shade_curved(
    i, j, stop, kind, radius, half_length, rgb, g, outlined, pattern, eye, ray, sun, pixel,
    scratch, flat, out,
):  # fmt: skip
    """A run on a sphere, or on the round part of a capsule or cylinder."""
    row, per_radius = f4(j), ONE / radius
    x0, y0 = ray[0][0] + ray[2][0] * row, ray[0][1] + ray[2][1] * row
    z0 = ray[0][2] + ray[2][2] * row
    for q in range(np.uint64(i), np.uint64(stop)):
        t, column = scratch.metres[q], f4(np.int32(q))
        dx, dy, dz = x0 + ray[1][0] * column, y0 + ray[1][1] * column, z0 + ray[1][2] * column
        x, y, z = eye[0] + t * dx, eye[1] + t * dy, eye[2] + t * dz
        lum, from_end = ONE, half_length - abs(z)
        if pattern > 0 and kind == CYLINDER:
            # The angle without arc tangents: a little uneven, but continuous at the front.
            turn = y / (abs(x) + abs(y) + f4(1e-9))
            around = (turn if x > ZERO else TWO - turn) * QUARTER_TURN * radius
            level = mip_level(ZERO, f4(4) * pixel * pixel * t * t)
            last, per_metre = np.int32((SIDE >> level) - 1), f4(SIDE >> level)
            at_u = np.int32((around + WRAP) * per_metre) & last
            at_v = np.int32((z + WRAP) * per_metre) & last
            lum = flat[np.uint64((pattern * LEVELS + level) * SIDE * SIDE + at_v * SIDE + at_u)]
        if kind == CYLINDER:
            z, dz = ZERO, ZERO
        elif kind == CAPSULE:
            if from_end > ZERO:
                dz = ZERO
            z -= clamp(z, -half_length, half_length)
        light = AMBIENT + (x * sun[0] + y * sun[1] + z * sun[2]) * per_radius
        if outlined:
            # A strip of width w along the silhouette: the squared cosine between the normal and
            # the ray is below 2 w / radius, nearly.
            facing = (x * dx + y * dy + z * dz) * per_radius
            rim = TWO * rim_width(t, pixel, f4(0.2) * radius) * per_radius
            end = rim_width(t, pixel, OUTLINE_SHARE * half_length)
            if facing * facing < rim * (dx * dx + dy * dy + dz * dz) or (
                kind == CYLINDER and from_end < end
            ):
                lum *= OUTLINE_LIGHT
        paint(out, j, q, lit(rgb, g, light), lum, scratch.clear[q])


@inlined
def shade_disc(i, j, stop, color, outlined, radius, eye, ray, pixel, scratch, out):
    """A run on a cylinder's flat end."""
    x0, y0 = ray[0][0] + ray[2][0] * f4(j), ray[0][1] + ray[2][1] * f4(j)
    for q in range(np.uint64(i), np.uint64(stop)):
        t, column, lum = scratch.metres[q], f4(np.int32(q)), ONE
        if outlined:
            x, y = eye[0] + t * (x0 + ray[1][0] * column), eye[1] + t * (y0 + ray[1][1] * column)
            kept = radius - rim_width(t, pixel, OUTLINE_SHARE * radius)
            if x * x + y * y > kept * kept:
                lum = OUTLINE_LIGHT
        paint(out, j, q, color, lum, scratch.clear[q])


@lean
def shade(kind, size, rgb, texture, flags, cam_mat, pixel, scratch, textures, out):
    """Colour every pixel of out; `pixel` is a pixel's width in metres at a depth of one metre."""
    height, width = scratch.depth.shape
    flat = textures.reshape(textures.size)
    faces, ray_of, eye_of, sun_of = scratch.face, scratch.ray, scratch.eye, scratch.sun
    for j in range(height):
        measure_row(j, scratch)
        i = 0
        while i < width:
            code = faces[j, i]
            stop, limit = i + 1, min(width, i + RUN)
            while stop < limit and faces[j, stop] == code:
                stop += 1
            if code < 0:
                shade_nothing(i, j, stop, cam_mat, pixel, out)
                i = stop
                continue
            g, side = code >> 3, code & 7
            outlined, pattern = flags[g] & OUTLINED != 0, texture[g]
            eye = (eye_of[g, 0], eye_of[g, 1], eye_of[g, 2])
            sun = (sun_of[g, 0], sun_of[g, 1], sun_of[g, 2])
            half = (size[g, 0], size[g, 1], size[g, 2])
            ray = (
                (ray_of[g, 0], ray_of[g, 1], ray_of[g, 2]),
                (ray_of[g, 3], ray_of[g, 4], ray_of[g, 5]),
                (ray_of[g, 6], ray_of[g, 7], ray_of[g, 8]),
            )
            if side == CURVED_FACE:
                shade_curved(
                    i, j, stop, kind[g], half[0], half[1], rgb, g, outlined, pattern, eye, ray,
                    sun, pixel, scratch, flat, out,
                )  # fmt: skip
            else:
                axis = side >> 1
                color = lit(rgb, g, AMBIENT + (-sun[axis] if side & 1 else sun[axis]))
                if kind[g] == BOX:
                    detailed_flat(
                        i, j, stop, axis, color, outlined, half, eye, ray, pattern, scratch, flat,
                        out,
                    )  # fmt: skip
                else:
                    shade_disc(i, j, stop, color, outlined, half[0], eye, ray, pixel, scratch, out)
            i = stop
