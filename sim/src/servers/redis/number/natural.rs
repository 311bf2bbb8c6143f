//! Natural numbers of any size, as far as [`super::Extended`] needs them.

use std::cmp::Ordering;

/// A natural number: its digits to the base 2^32, the lowest one first, without zeros at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural(Vec<u32>);

impl Natural {
    pub(super) fn from_u64(number: u64) -> Self {
        Self(vec![number as u32, (number >> 32) as u32]).trimmed()
    }

    pub(super) fn from_decimal(digits: impl Iterator<Item = u8>) -> Self {
        digits.fold(Self(Vec::new()), |number, digit| number.times_plus(10, u32::from(digit - b'0')))
    }

    pub(super) fn times_plus(mut self, factor: u32, addend: u32) -> Self {
        let mut carry = u64::from(addend);
        for digit in &mut self.0 {
            let product = u64::from(*digit) * u64::from(factor) + carry;
            *digit = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
        self
    }

    pub(super) fn times_power_of_ten(self, exponent: u32) -> Self {
        (0..exponent).fold(self, |number, _| number.times_plus(10, 0))
    }

    pub(super) fn shifted_left(&self, bits: u32) -> Self {
        let mut digits = vec![0; (bits / 32) as usize];
        let mut carry = 0;
        for digit in &self.0 {
            let wide = u64::from(*digit) << (bits % 32) | carry;
            digits.push(wide as u32);
            carry = wide >> 32;
        }
        digits.push(carry as u32);
        Self(digits).trimmed()
    }

    pub(super) fn bits(&self) -> u32 {
        match self.0.last() {
            None => 0,
            // A number has fewer than 2^32 bits.
            Some(highest) => 32 * self.0.len() as u32 - highest.leading_zeros(),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the highest bits, at most 66 of them with the last one set if any lower bit is set, and the
    /// number of bits below.
    pub(super) fn highest(&self) -> (u128, u32) {
        let below = self.bits().saturating_sub(66);
        let bit = |at: u32| self.0.get((at / 32) as usize).is_some_and(|digit| digit >> (at % 32) & 1 == 1);
        let high = (below..self.bits()).rev().fold(0u128, |high, at| high << 1 | u128::from(bit(at)));
        let is_inexact = (0..below).any(bit);
        (high | u128::from(is_inexact), below)
    }

    /// Divides by `divisor`. Returns the whole part, which must have fewer than 128 bits, and whether there
    /// is a rest.
    pub(super) fn divided(self, divisor: &Self) -> (u128, bool) {
        let (mut rest, mut whole) = (self, 0u128);
        for shift in (0..=rest.bits().saturating_sub(divisor.bits())).rev() {
            let part = divisor.shifted_left(shift);
            whole <<= 1;
            if rest.compare(&part) != Ordering::Less {
                rest = rest.minus(&part);
                whole |= 1;
            }
        }
        (whole, !rest.is_zero())
    }

    pub(super) fn to_decimal(&self) -> String {
        let (mut number, mut groups) = (self.clone(), Vec::new());
        while !number.is_zero() {
            let mut rest = 0;
            for digit in number.0.iter_mut().rev() {
                let wide = rest << 32 | u64::from(*digit);
                *digit = (wide / 1_000_000_000) as u32;
                rest = wide % 1_000_000_000;
            }
            number = number.trimmed();
            groups.push(format!("{rest:09}"));
        }
        groups.reverse();
        let text = groups.concat();
        let digits = text.trim_start_matches('0');
        if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn minus(mut self, other: &Self) -> Self {
        let mut borrow = 0;
        for (at, digit) in self.0.iter_mut().enumerate() {
            let taken = u64::from(other.0.get(at).copied().unwrap_or(0)) + borrow;
            borrow = u64::from(u64::from(*digit) < taken);
            *digit = (u64::from(*digit) + (borrow << 32) - taken) as u32;
        }
        self.trimmed()
    }

    fn trimmed(mut self) -> Self {
        let zeros = self.0.iter().rev().take_while(|digit| **digit == 0).count();
        self.0.truncate(self.0.len() - zeros);
        self
    }
}
