#include "worker/compute/cpu/cpu_program_builder.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace shoal::cpu {
namespace {

// Runs a oneDNN primitive. Its memory objects are made once. Only their addresses change, and
// rarely.
class PrimitiveKernel : public Kernel {
 public:
  PrimitiveKernel(dnnl::primitive primitive, dnnl::stream stream, const dnnl::engine& engine,
                  const std::vector<CpuProgramBuilder::Argument>& arguments)
      : primitive_(std::move(primitive)), stream_(std::move(stream)) {
    for (const CpuProgramBuilder::Argument& argument : arguments) {
      memories_.push_back(dnnl::memory(argument.desc, engine, DNNL_MEMORY_NONE));
      arguments_.emplace(argument.index, memories_.back());  // shares the memory object
    }
    addresses_.resize(memories_.size());
  }

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    try {
      for (size_t i = 0; i < memories_.size(); ++i) {
        if (addresses_[i] == tensors[i]) continue;
        memories_[i].set_data_handle(tensors[i]);
        addresses_[i] = tensors[i];
      }
      primitive_.execute(stream_, arguments_);
    } catch (const dnnl::error& error) {
      return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
    }
    return absl::OkStatus();
  }

 private:
  const dnnl::primitive primitive_;
  const dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::vector<void*> addresses_;
};

dnnl::memory::dims ImageDims(const Shape& shape) {
  return {shape[0], shape[3], shape[1], shape[2]};
}

dnnl::memory::desc Row(const Shape& shape, ComputeDtype type) {
  return {{ElementCount(shape)}, CpuProgramBuilder::DataTypeOf(type), dnnl::memory::format_tag::x};
}

}  // namespace

dnnl::primitive_attr CpuProgramBuilder::Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc CpuProgramBuilder::WithType(dnnl::memory::desc desc, ComputeDtype type) {
  desc.data.data_type = dnnl::memory::convert_to_c(DataTypeOf(type));
  return desc;
}

dnnl::memory::desc CpuProgramBuilder::RowMajorImage(const Shape& shape, ComputeDtype type) {
  return {ImageDims(shape), DataTypeOf(type), dnnl::memory::format_tag::nhwc};
}

dnnl::memory::desc CpuProgramBuilder::AnyImage(const Shape& shape, ComputeDtype type) {
  return {ImageDims(shape), DataTypeOf(type), dnnl::memory::format_tag::any};
}

dnnl::memory::desc CpuProgramBuilder::ImageDesc(ValueId value) const {
  const Tensor& tensor = builder_.tensor_info(builder_.tensor(value));
  if (tensor.layout != nullptr) return static_cast<const DnnlLayout&>(*tensor.layout).desc;
  return RowMajorImage(builder_.shape(value), tensor.type);
}

TensorId CpuProgramBuilder::ImageIn(ValueId value, const dnnl::memory::desc& wanted) {
  return Reordered(builder_.tensor(value), ImageDesc(value), wanted);
}

TensorId CpuProgramBuilder::RowMajor(ValueId value, ComputeDtype type) {
  const TensorId tensor = builder_.tensor(value);
  const Tensor& info = builder_.tensor_info(tensor);
  if (info.layout == nullptr && info.type == type) return tensor;
  const Shape shape = builder_.shape(value);
  if (shape.size() == 4) return Reordered(tensor, ImageDesc(value), RowMajorImage(shape, type));
  return Reordered(tensor, Row(shape, info.type), Row(shape, type));
}

TensorId CpuProgramBuilder::Reordered(TensorId tensor, const dnnl::memory::desc& from,
                                      const dnnl::memory::desc& to) {
  if (from == to) return tensor;
  for (const Reorder& reorder : reorders_) {
    if (reorder.from == tensor && reorder.to_desc == to) return reorder.to;
  }
  const TensorId copy = builder_.AddTensor(to.get_size(), DtypeOf(to));
  AddReorder(tensor, from, copy, to);
  reorders_.push_back({tensor, to, copy});
  return copy;
}

void CpuProgramBuilder::AddReorder(TensorId from, const dnnl::memory::desc& from_desc, TensorId to,
                                   const dnnl::memory::desc& to_desc) {
  const dnnl::reorder::primitive_desc pd(engine_, from_desc, engine_, to_desc, Attributes());
  std::string work = builder_.BeginWork("Reorder");
  AddPrimitive(dnnl::reorder(pd), pd.scratchpad_desc(),
               {{DNNL_ARG_FROM, from, from_desc}, {DNNL_ARG_TO, to, to_desc}});
  builder_.BeginWork(std::move(work));
}

TensorId CpuProgramBuilder::ImageOutput(ValueId value, const dnnl::memory::desc& desc) {
  const ComputeDtype type = DtypeOf(desc);
  if (desc == RowMajorImage(builder_.shape(value), type)) return builder_.Output(value, type);
  const TensorId tensor =
      builder_.AddTensor(desc.get_size(), type, std::make_shared<const DnnlLayout>(desc));
  builder_.Bind(value, tensor);
  return tensor;
}

void CpuProgramBuilder::StoreRowMajor(ValueId value, TensorId computed,
                                      const dnnl::memory::desc& desc, ComputeDtype type) {
  AddReorder(computed, desc, builder_.Output(value, type),
             RowMajorImage(builder_.shape(value), type));
}

void CpuProgramBuilder::AddPrimitive(const dnnl::primitive& primitive,
                                     const dnnl::memory::desc& scratchpad,
                                     std::vector<Argument> arguments) {
  if (scratchpad.get_size() > 0) {
    arguments.push_back(
        {DNNL_ARG_SCRATCHPAD, builder_.AddTensor(scratchpad.get_size()), scratchpad});
  }
  std::vector<TensorId> tensors;
  for (const Argument& argument : arguments) {
    const auto* own =
        static_cast<const DnnlLayout*>(builder_.tensor_info(argument.tensor).layout.get());
    SHOAL_CHECK(own == nullptr || own->desc == argument.desc, "tensor ", argument.tensor);
    tensors.push_back(argument.tensor);
  }
  builder_.AddStep(std::make_unique<PrimitiveKernel>(primitive, stream_, engine_, arguments),
                   std::move(tensors));
}

}  // namespace shoal::cpu
