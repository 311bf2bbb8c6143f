//! `bit`: operations on the bits of numbers. Source: `lua_bit.c` of Redis 7.0, Lua BitOp 1.0.2.
#![allow(unsafe_code, reason = "Lua's C interface; the rules of `gate`")]

use mlua::ffi::{self, lua_State};

use super::Functions;

pub(super) const FUNCTIONS: &Functions = &[
    (c"tobit", to_bit),
    (c"bnot", not),
    (c"band", and),
    (c"bor", or),
    (c"bxor", xor),
    (c"lshift", left_shift),
    (c"rshift", right_shift),
    (c"arshift", arithmetic_shift),
    (c"rol", rotate_left),
    (c"ror", rotate_right),
    (c"bswap", swap_bytes),
    (c"tohex", to_hex),
];

/// Added to a number, it moves the lowest 32 bits of the whole part to the lowest 32 of the sum: 2^52 + 2^51.
const SHIFTING: f64 = 6_755_399_441_055_744.0;

/// Returns the bits of an argument.
///
/// # Safety
///
/// `state` runs a function of this library; *may throw*.
unsafe fn operand(state: *mut lua_State, index: i32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let bits = (ffi::lua_tonumber(state, index) + SHIFTING).to_bits() as u32;
        if bits == 0 && ffi::lua_isnumber(state, index) == 0 {
            ffi::luaL_typerror(state, index, c"number".as_ptr());
        }
        bits
    }
}

/// Pushes `bits` as a signed number, the only result.
///
/// # Safety
///
/// As for [`operand`].
unsafe fn give(state: *mut lua_State, bits: u32) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { ffi::lua_pushnumber(state, f64::from(bits.cast_signed())) };
    1
}

/// Combines all arguments.
///
/// # Safety
///
/// As for [`operand`].
unsafe fn combine(state: *mut lua_State, combined: fn(u32, u32) -> u32) -> i32 {
    // SAFETY: the caller's promise. The order of the arguments decides which one an error names.
    unsafe {
        let mut bits = operand(state, 1);
        for index in (2..=ffi::lua_gettop(state)).rev() {
            bits = combined(bits, operand(state, index));
        }
        give(state, bits)
    }
}

/// Shifts the first argument by the lowest five bits of the second one.
///
/// # Safety
///
/// As for [`operand`].
unsafe fn shift(state: *mut lua_State, shifted: fn(u32, u32) -> u32) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        let bits = operand(state, 1);
        let count = operand(state, 2) & 31;
        give(state, shifted(bits, count))
    }
}

unsafe extern "C-unwind" fn to_bit(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { give(state, operand(state, 1)) }
}

unsafe extern "C-unwind" fn not(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { give(state, !operand(state, 1)) }
}

unsafe extern "C-unwind" fn and(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { combine(state, |one, other| one & other) }
}

unsafe extern "C-unwind" fn or(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { combine(state, |one, other| one | other) }
}

unsafe extern "C-unwind" fn xor(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { combine(state, |one, other| one ^ other) }
}

unsafe extern "C-unwind" fn left_shift(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { shift(state, |bits, count| bits << count) }
}

unsafe extern "C-unwind" fn right_shift(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { shift(state, |bits, count| bits >> count) }
}

unsafe extern "C-unwind" fn arithmetic_shift(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { shift(state, |bits, count| (bits.cast_signed() >> count).cast_unsigned()) }
}

unsafe extern "C-unwind" fn rotate_left(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { shift(state, u32::rotate_left) }
}

unsafe extern "C-unwind" fn rotate_right(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { shift(state, u32::rotate_right) }
}

unsafe extern "C-unwind" fn swap_bytes(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe { give(state, operand(state, 1).swap_bytes()) }
}

/// `bit.tohex(number, digits)`: in upper case if the number of digits is negative.
unsafe extern "C-unwind" fn to_hex(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls it.
    unsafe {
        let mut bits = operand(state, 1);
        let is_given = ffi::lua_isnone(state, 2) == 0;
        let count = if is_given { operand(state, 2).cast_signed() } else { 8 };
        let digits = if count < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
        let count = count.unsigned_abs().min(8) as usize;
        let mut text = [0u8; 8];
        for place in text.iter_mut().take(count).rev() {
            *place = digits[(bits & 15) as usize];
            bits >>= 4;
        }
        ffi::lua_pushlstring_(state, text.as_ptr().cast(), count);
        1
    }
}

#[cfg(test)]
mod tests {
    use crate::servers::redis::lua::libraries::check;

    #[test]
    fn bits_are_those_of_a_live_server() {
        check(include_str!("bit.txt"));
    }
}
