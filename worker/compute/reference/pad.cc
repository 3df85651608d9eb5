#include "common/model/ops/pad.h"

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Calls visit(index in the box, index in the outer shape) for every element of `box`, which lies
// `margins` from the sides of `outer`.
template <typename Visit>
void ForEachElement(const Shape& box, const Shape& outer, const Margins& margins, Visit visit) {
  const int64_t count = ElementCount(box);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, stride = 1, place = 0;
    for (size_t axis = box.size(); axis-- > 0;) {
      const int64_t before = axis == 0 ? 0 : margins.before[axis - 1];
      place += (rest % box[axis] + before) * stride;
      rest /= box[axis];
      stride *= outer[axis];
    }
    visit(i, place);
  }
}

}  // namespace

void Pad(const Arguments& a) {
  ForEachElement(a.inputs[0].shape, a.output().shape, static_cast<const PadOp&>(a.op).margins,
                 [&](int64_t x, int64_t y) { a.output().data[y] = a.inputs[0].data[x]; });
}

void Crop(const Arguments& a) {
  ForEachElement(a.output().shape, a.inputs[0].shape, static_cast<const CropOp&>(a.op).margins,
                 [&](int64_t y, int64_t x) { a.output().data[y] = a.inputs[0].data[x]; });
}

}  // namespace shoal::reference
