// A folder that contains a folder of pictures for each class. The order and the labels are those of
// keras.utils.image_dataset_from_directory.

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/missing_path.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/json/json_errors.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/dataset/skipping_dataset.h"
#include "worker/input/files/data_roots.h"
#include "worker/input/files/file_content.h"
#include "worker/input/files/joined_errors.h"
#include "worker/input/pictures/picture_loader.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// Files below a folder. It stores their names contiguously, because a large set has more than a
// million.
class PictureList {
 public:
  void Add(std::string_view file, uint32_t label) {
    text_.append(file);
    ends_.push_back(text_.size());
    labels_.push_back(label);
  }
  size_t size() const { return labels_.size(); }
  std::string_view file(uint64_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  uint32_t label(uint64_t i) const { return labels_[i]; }
  uint64_t bytes() const {
    return text_.capacity() + ends_.capacity() * sizeof(ends_[0]) +
           labels_.capacity() * sizeof(labels_[0]);
  }

 private:
  std::string text_;
  std::vector<uint64_t> ends_;
  std::vector<uint32_t> labels_;
};

// The kind of a file by its name, as in Keras.
enum class FileKind { kOther, kPicture, kPictureOfKeras };
FileKind KindOf(const fs::path& file) {
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") return FileKind::kPicture;
  return extension == ".bmp" || extension == ".gif" ? FileKind::kPictureOfKeras : FileKind::kOther;
}

bool IsHidden(const std::string& name) { return name.starts_with("."); }

absl::StatusOr<std::vector<std::string>> ClassesOf(const std::string& folder,
                                                   const std::vector<std::string>& roots) {
  SHOAL_RETURN_IF_ERROR(CheckBelowRoots(folder, roots));
  std::vector<std::string> classes;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unreadable;
    if (entry->is_directory(unreadable) && !IsHidden(name)) classes.push_back(name);
  }
  if (error) return PathError(error.value(), folder);
  if (classes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": has no folder in it; expected one for each class"));
  }
  std::sort(classes.begin(), classes.end());
  return classes;
}

// Names for a message, at most as many as a user reads.
std::string SomeOf(const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", Printable(names[i], kMaxNameBytes));
  if (names.size() > kMaxShown) absl::StrAppend(&text, " and ", names.size() - kMaxShown, " more");
  return text;
}

// Returns the folders that are not classes. Requires sorted folders.
std::vector<std::string> WithoutClass(const std::vector<std::string>& folders,
                                      std::vector<std::string> classes) {
  std::vector<std::string> unknown;
  std::sort(classes.begin(), classes.end());
  std::set_difference(folders.begin(), folders.end(), classes.begin(), classes.end(),
                      std::back_inserter(unknown));
  return unknown;
}

absl::Status OfNoClass(const std::string& folder, std::vector<std::string> unknown,
                       const std::vector<std::string>& classes) {
  for (std::string& name : unknown) name = (fs::path(folder) / name).string();
  return absl::InvalidArgumentError(
      absl::StrCat(SomeOf(unknown),
                   unknown.size() == 1 ? ": is not a trained class" : ": are not trained classes",
                   "; \"class_names\" or the training set's folders name these: ", SomeOf(classes),
                   ". Rename the folder, remove it, or train with it"));
}

// Returns the pictures below `path`, sorted. Their paths are relative to `base`. If `base` is
// empty, they begin with `path`.
absl::StatusOr<std::vector<std::string>> PicturesBelow(const std::string& path,
                                                       const std::string& base,
                                                       const std::vector<std::string>& roots) {
  SHOAL_RETURN_IF_ERROR(CheckBelowRoots(path, roots));
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreadable;
    if (KindOf(entry->path()) != FileKind::kOther && !entry->is_directory(unreadable)) {
      const fs::path& file = entry->path();
      files.push_back((base.empty() ? file : file.lexically_relative(base)).string());
    }
  }
  if (error) return PathError(error.value(), path);
  std::sort(files.begin(), files.end());
  return files;
}

// Adds the pictures of a class, sorted.
absl::Status AddClass(const std::string& folder, const std::string& name, uint32_t label,
                      const std::vector<std::string>& roots, PictureList* list) {
  const std::string path = (fs::path(folder) / name).string();
  SHOAL_ASSIGN_OR_RETURN(std::vector<std::string> files, PicturesBelow(path, folder, roots));
  for (const std::string& file : files) list->Add(file, label);
  return absl::OkStatus();
}

// Whether the file's content is of a kind that Keras reads but Shoal does not.
bool CannotBeRead(const std::string& path, const std::vector<std::string>& roots) {
  if (KindOf(path) != FileKind::kPictureOfKeras) return false;
  uint8_t head[8] = {};
  uint64_t size = 0;
  const auto file = OpenRegularFile(path, roots, "expected a picture", &size);
  if (!file.ok() || !ReadAt(*file, path, 0, head, std::min<uint64_t>(size, sizeof(head))).ok())
    return false;  // reading reports the error
  return !IsJpeg(head) && !IsPng(head);
}

// Finds unsupported pictures at opening, because the first batches may contain none of them.
absl::Status CheckKinds(const std::string& folder, const std::vector<std::string>& roots,
                        const PictureList& list) {
  uint64_t count = 0;
  std::string first;
  for (uint64_t i = 0; i < list.size(); ++i) {
    const std::string path = (fs::path(folder) / list.file(i)).string();
    if (!CannotBeRead(path, roots)) continue;
    if (count++ == 0) first = path;
  }
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      first, count == 1 ? " is a picture" : absl::StrCat(" is one of ", count, " pictures"),
      " of a kind that Shoal does not read; convert to PNG or JPEG, remove from the folder, or "
      "give \"damaged\": \"skip\" in the job's $.data"));
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(const DataSource& source, const Feature& input, PictureLoader loader,
              uint32_t classes, PictureList list)
      : folder_(source.paths[0]),
        roots_(source.roots),
        features_({input}),
        loader_(loader),
        one_hot_(source.label_mode == "categorical"),
        label_shape_(one_hot_ ? Shape{classes} : Shape{}),
        may_skip_(source.damaged == "skip"),
        list_(std::move(list)) {}
  // For pictures without classes. Their paths are absolute.
  ImageFolder(const Feature& input, PictureLoader loader, const DataSource& source,
              PictureList list)
      : roots_(source.roots),
        features_({input}),
        loader_(loader),
        one_hot_(false),
        label_shape_(kNoLabel),
        may_skip_(source.damaged == "skip"),
        list_(std::move(list)) {}

  uint64_t size() const override { return list_.size(); }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override { return label_shape_; }
  std::string NameOf(uint64_t index) const override { return std::string(list_.file(index)); }
  std::string LabelSource() const override { return "the folders of " + folder_; }
  bool IsCostlyToRead() const override { return true; }
  DatasetMemory memory() const override {
    return {.held = list_.bytes(), .temporary = ReadingMemory::kMaxBytes};
  }

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    if (absl::Status status = ReadPicture(index, features[0].floats); !status.ok())
      return may_skip_ ? status : WithRemedy(status);
    return ReadLabel(index, label);
  }

  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    if (label.empty()) return absl::OkStatus();
    if (one_hot_) std::fill(label.begin(), label.end(), 0.0f);
    (one_hot_ ? label[list_.label(index)] : label[0]) =
        one_hot_ ? 1.0f : static_cast<float>(list_.label(index));
    return absl::OkStatus();
  }

 private:
  absl::Status ReadPicture(uint64_t index, std::span<float> out) const {
    EncodedBytes content(&memory_);
    const std::string path = (fs::path(folder_) / list_.file(index)).string();
    SHOAL_RETURN_IF_ERROR(ReadWholeFile(path, roots_, &content));
    absl::Status status = loader_.Load(content.bytes(), &memory_.decoding, out);
    if (status.ok()) status = CheckValues(features_[0], out);
    if (status.ok()) return status;
    return WithSource(path, status);
  }

  const std::string folder_;
  const std::vector<std::string> roots_;
  const std::vector<Feature> features_;
  const PictureLoader loader_;
  const bool one_hot_;
  const Shape label_shape_;
  const bool may_skip_;  // damaged pictures
  const PictureList list_;
  mutable ReadingMemory memory_;
};

// The result of inspecting a picture.
struct Seen {
  absl::Status status;
  int64_t height = 0, width = 0;
};

Seen LookAt(const std::string& path, const std::vector<std::string>& roots, ReadingMemory* memory) {
  EncodedBytes content(memory);
  if (absl::Status status = ReadWholeFile(path, roots, &content); !status.ok())
    return {.status = std::move(status)};
  Picture picture;
  const absl::Status status =
      DecodePicture(content.bytes(), {.memory = &memory->decoding}, &picture);
  if (status.ok()) return {.height = picture.height, .width = picture.width};
  return {.status = WithSource(path, status)};
}

std::vector<Seen> LookAtAll(const std::string& folder, const std::vector<std::string>& roots,
                            const PictureList& list) {
  std::vector<Seen> seen(list.size());
  std::atomic<size_t> next = 0;
  ReadingMemory memory;
  const auto look = [&] {
    for (size_t i; (i = next++) < seen.size();)
      seen[i] = LookAt((fs::path(folder) / list.file(i)).string(), roots, &memory);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < ReadingThreads(); ++i) threads.emplace_back(look);
  look();
  for (std::thread& thread : threads) thread.join();
  return seen;
}

}  // namespace

// Decodes all pictures, on as many threads as read batches.
absl::StatusOr<DataReport> InspectImageFolder(const DataSource& source) {
  const std::string& folder = source.paths[0];
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassesOf(folder, source.roots));
  PictureList list;
  std::vector<std::string> class_lines;
  for (uint32_t i = 0; i < classes.size(); ++i) {
    const size_t before = list.size();
    SHOAL_RETURN_IF_ERROR(AddClass(folder, classes[i], i, source.roots, &list));
    class_lines.push_back(absl::StrCat("class ", i, ", ", Printable(classes[i], kMaxNameBytes),
                                       ": ", list.size() - before));
  }
  DataReport report;
  report.lines.push_back(absl::StrCat(list.size(), " pictures, ", classes.size(),
                                      classes.size() == 1 ? " class" : " classes"));
  const auto larger = [](const Seen& a, const Seen& b) {
    return a.height * a.width < b.height * b.width;
  };
  const std::vector<Seen> seen = LookAtAll(folder, source.roots, list);
  const Seen *least = nullptr, *most = nullptr;
  for (const Seen& each : seen) {
    if (!each.status.ok()) {
      report.AddDamage(each.status);
      if (IsDamage(each.status)) ++report.skippable_count;
      continue;
    }
    if (least == nullptr || larger(each, *least)) least = &each;
    if (most == nullptr || larger(*most, each)) most = &each;
  }
  if (least != nullptr) {
    report.lines.push_back(absl::StrCat("height x width from ", least->height, " x ", least->width,
                                        " to ", most->height, " x ", most->width));
  }
  report.lines.insert(report.lines.end(), class_lines.begin(), class_lines.end());
  return report;
}

absl::StatusOr<std::vector<std::string>> ClassNamesOf(const DataSource& source) {
  if (!source.class_names.empty()) return source.class_names;
  return ClassesOf(source.paths[0], source.roots);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const DataSource& source,
                                                         const std::vector<Feature>& inputs) {
  const std::string& folder = source.paths[0];
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": a folder of pictures has data for one input; the model has ", inputs.size()));
  }
  SHOAL_ASSIGN_OR_RETURN(const PictureLoader loader, PictureLoader::Make(source, inputs[0]));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> folders, ClassesOf(folder, source.roots));
  std::vector<std::string> classes = source.class_names.empty() ? folders : source.class_names;
  if (const auto unknown = WithoutClass(folders, classes); !unknown.empty()) {
    if (!source.unlabelled) return OfNoClass(folder, unknown, classes);
    classes.insert(classes.end(), unknown.begin(), unknown.end());
  }
  if (source.label_mode == "binary" && !source.unlabelled && classes.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": has ", classes.size(), " classes; \"label_mode\": \"binary\" is for 2"));
  }
  PictureList list;
  for (uint32_t i = 0; i < classes.size(); ++i) {
    // A test set may lack pictures of a class.
    if (std::binary_search(folders.begin(), folders.end(), classes[i]))
      SHOAL_RETURN_IF_ERROR(AddClass(folder, classes[i], i, source.roots, &list));
  }
  if (list.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": has no picture in its folders; expected .jpg, .jpeg or .png"));
  }
  if (source.damaged == "fail") SHOAL_RETURN_IF_ERROR(CheckKinds(folder, source.roots, list));
  return std::make_unique<ImageFolder>(source, inputs[0], loader,
                                       static_cast<uint32_t>(classes.size()), std::move(list));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenPictures(const DataSource& source,
                                                      const std::vector<Feature>& inputs) {
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.paths[0], ": pictures are data for one input; the model has ", inputs.size()));
  }
  SHOAL_ASSIGN_OR_RETURN(const PictureLoader loader, PictureLoader::Make(source, inputs[0]));
  PictureList list;
  absl::Status status;
  for (const std::string& path : source.paths) {
    SHOAL_RETURN_IF_ERROR(CheckBelowRoots(path, source.roots));
    std::error_code error;
    const fs::file_status there = fs::status(path, error);
    if (!fs::is_directory(there)) {
      if (!fs::exists(there)) status = JoinErrors(status, MissingPath(path));
      list.Add(path, 0);
      continue;
    }
    SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           PicturesBelow(path, "", source.roots));
    for (const std::string& file : files) list.Add(file, 0);
  }
  SHOAL_RETURN_IF_ERROR(status);
  if (list.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.paths[0], ": has no picture in it; expected .jpg, .jpeg or .png"));
  }
  return std::make_unique<ImageFolder>(inputs[0], loader, source, std::move(list));
}

}  // namespace shoal
