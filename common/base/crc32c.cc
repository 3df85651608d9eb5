#include "common/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

// A CRC is a polynomial over GF(2) modulo P. It is stored reflected: the highest bit is the
// coefficient of x^0. "crc" below is the final value. CRC-32C inverts its bits at the start and at
// the end.

namespace shoal {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as the bytes lie");

constexpr uint32_t kPolynomial = 0x82F63B78;

// tables[k][b] is what byte b adds to the remainder if k more bytes follow it ("slicing by 8").
constexpr std::array<std::array<uint32_t, 256>, 8> MakeTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}
constexpr auto kTables = MakeTables();

constexpr uint32_t kOne = 0x80000000;  // the polynomial 1

// a * b modulo P.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);
  }
  return product;
}

// kSquares[i] = x^(8 * 2^i) modulo P: the factor by which 2^i zero bytes multiply a remainder.
constexpr std::array<uint32_t, 64> MakeSquares() {
  std::array<uint32_t, 64> squares{};
  uint32_t power = kOne >> 8;  // x^8
  for (uint32_t& square : squares) {
    square = power;
    power = Multiply(power, power);
  }
  return squares;
}
constexpr auto kSquares = MakeSquares();

// x^(8 * size_bytes) modulo P.
constexpr uint32_t PowerOfBytes(uint64_t size_bytes) {
  uint32_t power = kOne;
  for (size_t i = 0; size_bytes != 0; ++i, size_bytes >>= 1) {
    if (size_bytes & 1) power = Multiply(power, kSquares[i]);
  }
  return power;
}

uint64_t LoadWord(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

}  // namespace

namespace crc32c_internal {

uint32_t WithTables(uint32_t crc, const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint32_t state = ~crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    const uint64_t word = LoadWord(bytes) ^ state;
    state = 0;
    for (size_t k = 0; k < 8; ++k) state ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; size > 0; ++bytes, --size) state = (state >> 8) ^ kTables[0][(state ^ *bytes) & 0xFF];
  return ~state;
}

#if defined(__x86_64__)

bool HasInstruction() { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) uint32_t WithInstruction(uint32_t crc, const void* data,
                                                           size_t size) {
  // The instruction takes three cycles but can start every cycle. Three parallel runs keep it busy.
  constexpr size_t kRunBytes = 8192;
  constexpr uint32_t kOneRun = PowerOfBytes(kRunBytes);
  constexpr uint32_t kTwoRuns = PowerOfBytes(2 * kRunBytes);

  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t state = ~crc;
  for (; size >= 3 * kRunBytes; bytes += 3 * kRunBytes, size -= 3 * kRunBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kRunBytes; i += 8) {
      state = _mm_crc32_u64(state, LoadWord(bytes + i));
      second = _mm_crc32_u64(second, LoadWord(bytes + kRunBytes + i));
      third = _mm_crc32_u64(third, LoadWord(bytes + 2 * kRunBytes + i));
    }
    state = Multiply(kTwoRuns, static_cast<uint32_t>(state)) ^
            Multiply(kOneRun, static_cast<uint32_t>(second)) ^ third;
  }
  for (; size >= 8; bytes += 8, size -= 8) state = _mm_crc32_u64(state, LoadWord(bytes));
  for (; size > 0; ++bytes, --size) {
    state = _mm_crc32_u8(static_cast<uint32_t>(state), *bytes);
  }
  return ~static_cast<uint32_t>(state);
}

#else

bool HasInstruction() { return false; }
uint32_t WithInstruction(uint32_t crc, const void* data, size_t size) {
  return WithTables(crc, data, size);
}

#endif

}  // namespace crc32c_internal

uint32_t Crc32c(uint32_t crc, const void* data, size_t size) {
  if (crc32c_internal::HasInstruction()) return crc32c_internal::WithInstruction(crc, data, size);
  return crc32c_internal::WithTables(crc, data, size);
}

uint32_t Crc32cConcat(uint32_t crc_a, uint32_t crc_b, uint64_t size_b_bytes) {
  return Multiply(PowerOfBytes(size_b_bytes), crc_a) ^ crc_b;
}

std::string ChecksumText(uint32_t crc32c) { return absl::StrFormat("%08x", crc32c); }

}  // namespace shoal
