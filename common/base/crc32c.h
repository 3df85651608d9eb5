#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

// Returns the CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of `size` bytes. `crc` is the
// value for the bytes before them, 0 at the start. Uses the CPU's instruction if it has one.
// Crc32c(0, "123456789", 9) is 0xE3069283.
uint32_t Crc32c(uint32_t crc, const void* data, size_t size);
// The CRC-32C of `data`.
inline uint32_t Crc32c(std::string_view data) { return Crc32c(0, data.data(), data.size()); }

// Returns the CRC-32C of A followed by B, from their CRCs and B's length.
uint32_t Crc32cConcat(uint32_t crc_a, uint32_t crc_b, uint64_t size_b_bytes);

// The text form of checksums and fingerprints: "1a2b3c4d".
std::string ChecksumText(uint32_t crc32c);

// The two implementations of Crc32c, for the test that compares them.
namespace crc32c_internal {
uint32_t WithTables(uint32_t crc, const void* data, size_t size);
// Whether this CPU has the instruction for WithInstruction().
bool HasInstruction();
uint32_t WithInstruction(uint32_t crc, const void* data, size_t size);
}  // namespace crc32c_internal

}  // namespace shoal
