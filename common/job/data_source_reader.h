#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/data_source.h"
#include "common/job/job_reader.h"
#include "common/json/json_errors.h"

namespace shoal {

// Returns the allowed values of a data source's `format`: the names in data_format_list.inc.
std::vector<std::string> DataFormatNames();

// Reads the entry of a job's data section at `path`. Adds problems to `errors`; the returned source
// is then incomplete.
DataSource ReadDataSource(const nlohmann::json& value, const std::string& path,
                          const JobReadOptions& options, JsonErrors* errors);

// Converts a source to JSON that ReadDataSource reads back as the same source. Omits fields with
// default values. This keeps the job of a run that an older version began unchanged.
nlohmann::json DataSourceToJson(const DataSource& source);

}  // namespace shoal
