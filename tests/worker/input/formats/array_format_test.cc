// The headers of IDX and NPY files, and how their numbers become float32. This file asserts the
// texts of messages of worker/input.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/worker/input/formats/data_file_content.h"
#include "worker/input/formats/arrays/array_header.h"
#include "worker/input/formats/arrays/element_type.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string HeaderError(const std::string& head) {
  const auto header = ParseArrayHeader(head);
  return header.ok() ? "no error" : std::string(header.status().message());
}

absl::StatusCode CodeOf(const std::string& head) { return ParseArrayHeader(head).status().code(); }

TEST(IdxFormatTest, ReadsEveryType) {
  const struct {
    uint8_t code;
    ElementType type;
    uint64_t bytes;
  } types[] = {{0x08, ElementType::kU8, 1},  {0x09, ElementType::kI8, 1},
               {0x0B, ElementType::kI16, 2}, {0x0C, ElementType::kI32, 4},
               {0x0D, ElementType::kF32, 4}, {0x0E, ElementType::kF64, 8}};
  for (const auto& entry : types) {
    const auto header = ParseArrayHeader(IdxHeader(entry.code, {70000, 2, 3}));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->format.type, entry.type);
    EXPECT_EQ(header->format.order, std::endian::big);
    EXPECT_EQ(header->shape, (Shape{70000, 2, 3}));
    EXPECT_EQ(header->data_offset, 16u);
    EXPECT_EQ(header->data_bytes, 420000 * entry.bytes);
  }
}

TEST(IdxFormatTest, DamageIsNamedWithItsOffset) {
  EXPECT_THAT(HeaderError(""), HasSubstr("empty"));
  EXPECT_THAT(HeaderError(std::string("\0\0\x08", 3)), HasSubstr("ends at byte 3"));
  EXPECT_THAT(HeaderError(IdxHeader(0x0A, {5})),
              AllOf(HasSubstr("byte 2"), HasSubstr("0x0a"), HasSubstr("f64")));
  EXPECT_THAT(HeaderError(IdxHeader(0x08, {5, 6, 7}).substr(0, 10)),
              AllOf(HasSubstr("ends at byte 10"), HasSubstr("3 extents up to byte 16")));
  EXPECT_THAT(HeaderError(IdxHeader(0x08, {5, 0, 7})),
              AllOf(HasSubstr("(5, 0, 7)"), HasSubstr("extent 0")));
  EXPECT_THAT(HeaderError(IdxHeader(0x08, {})), HasSubstr("no axis"));
  const uint32_t most = std::numeric_limits<uint32_t>::max();
  EXPECT_THAT(HeaderError(IdxHeader(0x08, {most, most, most})),
              HasSubstr("more bytes than any file"));
  // 2^63 - 1 bytes of data alone, without the header, would fit.
  EXPECT_THAT(HeaderError(IdxHeader(0x08, {7, 7, 73, 127, 337, 92737, 649657})),
              HasSubstr("more bytes than any file"));
}

TEST(ArrayFormatTest, UnknownContentIsShown) {
  EXPECT_THAT(HeaderError("\x89PNG\r\n"), AllOf(HasSubstr("byte 0"), HasSubstr("\\x89PNG\\r\\n"),
                                                HasSubstr("IDX"), HasSubstr("NPY")));
}

TEST(NpyFormatTest, ReadsEveryTypeAndVersion) {
  const struct {
    const char* descr;
    ElementType type;
    std::endian order;
  } types[] = {{"|u1", ElementType::kU8, std::endian::little},
               {"|i1", ElementType::kI8, std::endian::little},
               {"<i2", ElementType::kI16, std::endian::little},
               {"<i4", ElementType::kI32, std::endian::little},
               {"<i8", ElementType::kI64, std::endian::little},
               {"<f4", ElementType::kF32, std::endian::little},
               {"<f8", ElementType::kF64, std::endian::little},
               {">f4", ElementType::kF32, std::endian::big}};
  for (const int major : {1, 2, 3}) {
    for (const auto& entry : types) {
      const std::string head = NpyHeader(major, NpyDict(entry.descr, "(6, 28, 28)"));
      const auto header = ParseArrayHeader(head);
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(header->format.type, entry.type);
      EXPECT_EQ(header->format.order, entry.order);
      EXPECT_EQ(header->shape, (Shape{6, 28, 28}));
      EXPECT_EQ(header->data_offset, head.size());
    }
  }
}

TEST(NpyFormatTest, ReadsOtherSpellingsOfTheDict) {
  const auto header = ParseArrayHeader(
      NpyHeader(1, "{ \"shape\" :(7 ,) , \"fortran_order\":False,\"descr\":\"<f4\"}"));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->shape, (Shape{7}));
}

TEST(NpyFormatTest, AnUnsupportedTypeIsRejectedByName) {
  const std::string fortran =
      NpyHeader(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }");
  EXPECT_EQ(CodeOf(fortran), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(HeaderError(fortran),
              AllOf(HasSubstr("Fortran order"), HasSubstr("ascontiguousarray")));
  for (const char* descr : {"<f2", "<c8", "|O", "<U5", "|b1", "<u2", "|i4", "=f4", "f4", ""}) {
    const std::string head = NpyHeader(1, NpyDict(descr, "(3,)"));
    EXPECT_EQ(CodeOf(head), absl::StatusCode::kUnimplemented) << descr;
    EXPECT_THAT(HeaderError(head), AllOf(HasSubstr(descr), HasSubstr("'<f4'")));
  }
  const std::string records =
      NpyHeader(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ(CodeOf(records), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(HeaderError(records), HasSubstr("element type of several fields; expected one of "));
  const auto error = [](const char* descr) {
    return HeaderError(NpyHeader(1, NpyDict(descr, "(3,)")));
  };
  EXPECT_EQ(error("<f2"),
            "at byte 20: element type '<f2' (float16); expected one of '|u1' '|i1' '<i2' '<i4' "
            "'<i8' '<f4' '<f8' (array.astype('<f4') makes one)");
  EXPECT_THAT(error("|b1"), HasSubstr("element type '|b1' (bool);"));
  EXPECT_THAT(error("<U5"), HasSubstr("element type '<U5' (str);"));
  EXPECT_THAT(error("<c8"), HasSubstr("element type '<c8' (complex64);"));
  EXPECT_THAT(error("<f999999999"), HasSubstr("element type '<f999999999';"));
}

TEST(NpyFormatTest, DamageIsNamedWithItsOffset) {
  const auto error = [](const std::string& dict) { return HeaderError(NpyHeader(1, dict)); };
  EXPECT_THAT(HeaderError("\x93NUMPY"), HasSubstr("ends at byte 6"));
  EXPECT_THAT(HeaderError(NpyHeader(4, NpyDict("<f4", "(3,)"))),
              AllOf(HasSubstr("byte 6"), HasSubstr("version 4")));
  EXPECT_THAT(HeaderError(NpyHeader(1, NpyDict("<f4", "(3,)")).substr(0, 40)),
              HasSubstr("ends at byte 40"));
  EXPECT_THAT(HeaderError(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff", 12)),
              AllOf(HasSubstr("byte 8"), HasSubstr("4294967295"), HasSubstr("at most 65524")));
  EXPECT_THAT(error("[1]"), AllOf(HasSubstr("byte 10"), HasSubstr("expected '{'")));
  EXPECT_THAT(error("{}"), HasSubstr("'descr', 'fortran_order' and 'shape'"));
  EXPECT_THAT(error("{'descr': '<f4', 'descr': '<f4'}"), HasSubstr("byte 27"));
  EXPECT_THAT(error("{'colour': '<f4'}"), AllOf(HasSubstr("colour"), HasSubstr("byte 11")));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"),
              HasSubstr("True or False"));
  EXPECT_THAT(error(NpyDict("<f4", "3")), HasSubstr("expected '('"));
  EXPECT_THAT(error(NpyDict("<f4", "(-3,)")), HasSubstr("expected an extent"));
  EXPECT_THAT(error(NpyDict("<f4", "(99999999999999999999,)")), HasSubstr("below 2^63"));
  EXPECT_THAT(error(NpyDict("<f4", "(9223372036854775807,)")),
              HasSubstr("more bytes than any file"));
  EXPECT_THAT(error(NpyDict("<f4", "(0, 3)")), HasSubstr("extent 0"));
  EXPECT_THAT(error(NpyDict("<f4", "()")), HasSubstr("no axis"));
  EXPECT_THAT(error("{'descr': '<f4"), HasSubstr("a string that ends"));
  EXPECT_THAT(error(NpyDict("<f4", "(3,)") + "x"), HasSubstr("the header's end"));
}

template <typename Number>
void ExpectConverts(ElementType type, const std::vector<double>& numbers) {
  for (const bool big_endian : {false, true}) {
    // Begins at an odd address: data need not be aligned.
    std::string stored = Stored<Number>(numbers, big_endian);
    stored.insert(stored.begin(), 'x');
    std::vector<float> out(numbers.size());
    ConvertToFloat({type, big_endian ? std::endian::big : std::endian::little}, stored.data() + 1,
                   out);
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(out[i], static_cast<float>(numbers[i])) << ElementTypeName(type);
    }
  }
  EXPECT_EQ(ElementBytes(type), sizeof(Number));
}

TEST(ElementTypeTest, ConvertsEveryTypeInBothOrders) {
  // More numbers than a vector register holds, and an odd rest.
  std::vector<double> bytes;
  for (int i = 0; i < 1027; ++i) bytes.push_back(i % 256);
  ExpectConverts<uint8_t>(ElementType::kU8, bytes);
  std::vector<double> signed_bytes;
  for (int i = 0; i < 1027; ++i) signed_bytes.push_back(i % 256 - 128);
  ExpectConverts<int8_t>(ElementType::kI8, signed_bytes);
  ExpectConverts<int16_t>(ElementType::kI16, {-32768, -1, 0, 1, 258, 32767});
  ExpectConverts<int32_t>(ElementType::kI32, {-2147483648.0, -1, 0, 1, 16909060, 16777216});
  ExpectConverts<int64_t>(ElementType::kI64, {-4294967296.0, -1, 0, 1, 1099511627776.0, 16777216});
  ExpectConverts<float>(ElementType::kF32, {-1.5, 0, 0.25, 1e30});
  ExpectConverts<double>(ElementType::kF64, {-1.5, 0, 0.1, 1e30});
}

}  // namespace
}  // namespace shoal
