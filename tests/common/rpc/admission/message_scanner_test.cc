#include "common/rpc/admission/message_scanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace shoal {
namespace {

constexpr size_t kMax = 200 << 10;  // above MessageScanner::kMaxUnchecked

// As it travels: its flag and length before it.
std::string MessageOf(size_t bytes) {
  const std::string prefix = {0, static_cast<char>(bytes >> 24), static_cast<char>(bytes >> 16),
                              static_cast<char>(bytes >> 8), static_cast<char>(bytes)};
  return prefix + std::string(bytes, 'a');
}

class MessageScannerTest : public ::testing::Test {
 protected:
  MessageScannerTest() { scanner_.set_max_bytes(kMax); }
  // In pieces of so many bytes.
  bool Accept(uint32_t stream, const std::string& bytes, size_t piece) {
    for (size_t at = 0; at < bytes.size(); at += piece) {
      if (!scanner_.Accept(stream, reinterpret_cast<const uint8_t*>(bytes.data()) + at,
                           std::min(piece, bytes.size() - at))) {
        return false;
      }
    }
    return true;
  }
  MessageScanner scanner_;
};

TEST_F(MessageScannerTest, MessagesUpToTheMaxPass) {
  for (const size_t piece : {1, 3, 16384, 1 << 20}) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{70'000}, kMax}) {
      EXPECT_TRUE(Accept(1, MessageOf(bytes) + MessageOf(bytes) + MessageOf(3), piece));
      EXPECT_EQ(scanner_.TakeTooLong(), 0u) << bytes;
    }
  }
}

TEST_F(MessageScannerTest, ReportsALongerMessageOnceAtItsBeginning) {
  for (const size_t piece : {7, 16384}) {
    const std::string message = MessageOf(kMax + 1);
    EXPECT_TRUE(Accept(1, MessageOf(10) + message.substr(0, MessageScanner::kMaxUnchecked), piece));
    EXPECT_EQ(scanner_.TakeTooLong(), 0u);
    EXPECT_TRUE(Accept(1, message.substr(MessageScanner::kMaxUnchecked), piece));
    EXPECT_EQ(scanner_.TakeTooLong(), kMax + 1);
    EXPECT_EQ(scanner_.TakeTooLong(), 0u);
  }
}

TEST_F(MessageScannerTest, StreamsTakeTurns) {
  const std::string message = MessageOf(kMax);
  for (size_t at = 0; at < message.size(); at += 1000) {
    for (uint32_t stream = 1; stream < 9; ++stream)
      EXPECT_TRUE(Accept(stream, message.substr(at, 1000), 1000));
  }
  EXPECT_EQ(scanner_.TakeTooLong(), 0u);
}

TEST_F(MessageScannerTest, AStreamThatEndsForgetsItsMessage) {
  EXPECT_TRUE(Accept(1, MessageOf(kMax + 1).substr(0, 100'000), 4096));
  scanner_.End(1);
  EXPECT_TRUE(Accept(1, MessageOf(kMax), 4096));
  EXPECT_EQ(scanner_.TakeTooLong(), 0u);
}

TEST_F(MessageScannerTest, AMessageThatContinuesIsAFlood) {
  const std::string rest(1 << 20, 'a');
  EXPECT_TRUE(Accept(1, MessageOf(64 << 20).substr(0, 1 << 20), 16384));
  EXPECT_EQ(scanner_.TakeTooLong(), size_t{64} << 20);
  size_t taken = 1 << 20;
  while (taken < (size_t{64} << 20) && Accept(1, rest, 16384)) taken += rest.size();
  EXPECT_GE(taken, MessageScanner::kMaxIgnored);
  EXPECT_LE(taken, MessageScanner::kMaxIgnored + (2 << 20));
}

TEST_F(MessageScannerTest, UnfinishedMessagesTakeBoundedMemory) {
  for (uint32_t stream = 1; stream < 100'000; stream += 2)
    EXPECT_TRUE(Accept(stream, MessageOf(kMax).substr(0, 100), 100));
  EXPECT_LE(scanner_.open_messages(), 64u);
}

}  // namespace
}  // namespace shoal
