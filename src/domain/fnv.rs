//! FNV-1a with 64 bits: the same in every build, for names and against torn writes. No attacker chooses the
//! bytes.

/// Hash of no bytes.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Factor of each step.
const PRIME: u64 = 0x0100_0000_01b3;

/// Returns the hash of bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_hash_is_that_of_its_authors() {
        // http://www.isthe.com/chongo/src/fnv/test_fnv.c
        assert_eq!([hash(b""), hash(b"a")], [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c]);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
