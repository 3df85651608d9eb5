// .npz: a zip archive of .npy files from numpy.savez or numpy.savez_compressed.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/archive/zip_archive.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/files/data_roots.h"
#include "worker/input/files/file_content.h"
#include "worker/input/files/joined_errors.h"
#include "worker/input/formats/arrays/array_rows.h"

namespace shoal {
namespace {

absl::StatusOr<ZipArchive> OpenArchive(const std::string& path, const DataSource& source) {
  SHOAL_RETURN_IF_ERROR(CheckBelowRoots(path, source.roots));
  return ZipArchive::Open(path);
}

absl::StatusOr<std::unique_ptr<ArrayFile>> OpenMember(ZipArchive& archive,
                                                      const std::string& array) {
  const std::string name = absl::StrCat(archive.path(), ": ", array, ".npy");
  SHOAL_ASSIGN_OR_RETURN(ZipArchive::Member member, archive.OpenMember(array + ".npy"));
  return ArrayFile::FromStream(name, [&member](std::span<char> out) { return member.Read(out); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenNpz(const DataSource& source,
                                                 const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(source));
  if (paths.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths[0], ": is one of ", paths.size(), " files; expected one .npz"));
  }
  SHOAL_ASSIGN_OR_RETURN(const auto matched, MatchFeatures(source.features, inputs));
  SHOAL_ASSIGN_OR_RETURN(ZipArchive archive, OpenArchive(paths[0], source));
  absl::Status status;
  ArrayRows::Arrays arrays;
  for (const DataSource::Feature* feature : matched) {
    absl::StatusOr<std::unique_ptr<ArrayFile>> array = OpenMember(archive, feature->from[0]);
    status = JoinErrors(status, array.status());
    if (array.ok()) arrays.features.push_back(*std::move(array));
  }
  if (!source.unlabelled) {
    absl::StatusOr<std::unique_ptr<ArrayFile>> labels = OpenMember(archive, source.labels);
    status = JoinErrors(status, labels.status());
    if (labels.ok()) arrays.labels = *std::move(labels);
  }
  SHOAL_RETURN_IF_ERROR(status);
  return ArrayRows::Make(std::move(arrays), inputs);
}

absl::StatusOr<DataReport> InspectNpz(const DataSource& source) {
  SHOAL_ASSIGN_OR_RETURN(ZipArchive archive, OpenArchive(source.paths[0], source));
  DataReport report;
  for (const std::string& member : archive.Names()) {
    if (!member.ends_with(".npy")) {
      report.lines.push_back(Printable(member, kMaxNameBytes) + ": no .npy, so it is not read");
      continue;
    }
    const std::string name = member.substr(0, member.size() - 4);
    const absl::StatusOr<std::unique_ptr<ArrayFile>> array = OpenMember(archive, name);
    if (!array.ok()) {
      report.AddDamage(array.status());
    } else {
      report.lines.push_back(
          absl::StrCat(Printable(name, kMaxNameBytes), ": ", (*array)->ToString()));
    }
  }
  return report;
}

}  // namespace shoal
