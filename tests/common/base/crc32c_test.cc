#include "common/base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace shoal {
namespace {

// Values from RFC 3720, section B.4, and the usual check value.
TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c(0, "123456789", 9), 0xE3069283u);
  EXPECT_EQ(Crc32c(0, "", 0), 0u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c_internal::WithTables(0, "123456789", 9), 0xE3069283u);
}

TEST(Crc32cTest, IsWrittenWithAllItsDigits) { EXPECT_EQ(ChecksumText(0xBEEF), "0000beef"); }

std::vector<unsigned char> RandomBytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

TEST(Crc32cTest, InstructionAndTablesAgree) {
  if (!crc32c_internal::HasInstruction()) GTEST_SKIP() << "this CPU has no CRC-32C instruction";
  const std::vector<unsigned char> bytes = RandomBytes(200'000, 1);
  // Around the sizes at which the code takes another way, at every alignment.
  for (const size_t size :
       {0, 1, 7, 8, 9, 63, 1000, 8191, 8192, 24575, 24576, 24577, 49160, 199'990}) {
    for (size_t offset = 0; offset < 9; ++offset) {
      const auto crc = static_cast<uint32_t>(size * 31 + offset);
      ASSERT_EQ(crc32c_internal::WithInstruction(crc, bytes.data() + offset, size),
                crc32c_internal::WithTables(crc, bytes.data() + offset, size))
          << "size " << size << " offset " << offset;
    }
  }
}

TEST(Crc32cTest, ContinuesAndConcatenates) {
  const std::vector<unsigned char> bytes = RandomBytes(100'000, 2);
  const uint32_t whole = Crc32c(0, bytes.data(), bytes.size());
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{17}, size_t{65'536}, bytes.size()}) {
    const uint32_t a = Crc32c(0, bytes.data(), cut);
    const uint32_t b = Crc32c(0, bytes.data() + cut, bytes.size() - cut);
    EXPECT_EQ(Crc32c(a, bytes.data() + cut, bytes.size() - cut), whole);
    EXPECT_EQ(Crc32cConcat(a, b, bytes.size() - cut), whole);
  }
}

// Lengths that nobody can hold in memory: (A B) C and A (B C) must be the same.
TEST(Crc32cTest, ConcatenationOfHugeLengthsIsAssociative) {
  const uint64_t b_size = (uint64_t{1} << 45) + 12345;
  const uint64_t c_size = (uint64_t{1} << 41) + 99;
  const uint32_t a = 0x12345678, b = 0x9ABCDEF0, c = 0x0F1E2D3C;
  EXPECT_EQ(Crc32cConcat(Crc32cConcat(a, b, b_size), c, c_size),
            Crc32cConcat(a, Crc32cConcat(b, c, c_size), b_size + c_size));
}

}  // namespace
}  // namespace shoal
