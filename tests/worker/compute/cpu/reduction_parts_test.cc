#include "worker/compute/cpu/reduction_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shoal::cpu {
namespace {

// The element of y that each element of x belongs to.
std::vector<int64_t> PlacesOf(const Shape& x, const Shape& y) {
  std::vector<int64_t> places(ElementCount(x));
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), size = 1;
    for (size_t axis = 1; axis <= x.size(); ++axis) {
      const int64_t extent = x[x.size() - axis];
      if (axis <= y.size() && y[y.size() - axis] != 1) {
        places[i] += rest % extent * size;
        size *= extent;
      }
      rest /= extent;
    }
  }
  return places;
}

void ExpectEachElementOnce(const Shape& x, const Shape& y) {
  const ReductionParts parts(x, y);
  std::vector<int64_t> results(ElementCount(x), -1);
  for (int64_t i = 0; i < parts.count(); ++i) {
    const ReductionParts::Part part = parts.part(i);
    EXPECT_LE(part.width * (part.row_end - part.row_begin), parts.part_elements());
    for (int64_t row = part.row_begin; row < part.row_end;) {
      const ReductionParts::Run run = parts.RunFrom(part, row);
      ASSERT_GT(run.rows, 0);
      for (int64_t r = 0; r < run.rows; ++r) {
        for (int64_t c = 0; c < part.width; ++c) {
          const int64_t element = run.first + r * run.stride + c;
          ASSERT_EQ(results.at(element), -1);
          results[element] = part.result + (parts.columns_kept() ? c : 0);
        }
      }
      row += run.rows;
    }
  }
  // Each result belongs to the y that FirstResult() says.
  const std::vector<int64_t> places = PlacesOf(x, y);
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t distance = results[i] - parts.FirstResult(places[i]);
    ASSERT_EQ(distance % parts.results_stride(), 0);
    ASSERT_GE(distance, 0);
    ASSERT_LT(distance / parts.results_stride(), parts.results_of_each());
    ASSERT_LT(results[i], parts.result_count());
  }
}

TEST(ReductionPartsTest, CoverEachElementOnce) {
  ExpectEachElementOnce({1}, {1});
  ExpectEachElementOnce({7, 5}, {7, 1});
  ExpectEachElementOnce({7, 5}, {5});
  ExpectEachElementOnce({7, 5}, {1, 1});
  ExpectEachElementOnce({7, 5}, {7, 5});
  ExpectEachElementOnce({3, 4, 5, 6}, {3, 1, 1, 6});
  ExpectEachElementOnce({3, 4, 5, 6}, {4, 1, 6});
  ExpectEachElementOnce({3, 4, 5, 6}, {3, 1, 5, 1});
  ExpectEachElementOnce({3, 4, 5, 6, 2}, {1, 4, 1, 6, 1});
  ExpectEachElementOnce({70000}, {1});
  ExpectEachElementOnce({3, 70000}, {3, 1});
  ExpectEachElementOnce({3, 70000}, {70000});
  ExpectEachElementOnce({9000, 10}, {10});
  ExpectEachElementOnce({2, 9000, 10}, {2, 1, 10});
  ExpectEachElementOnce({300, 2, 301}, {1, 2, 1});
}

}  // namespace
}  // namespace shoal::cpu
