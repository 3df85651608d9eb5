#pragma once

#include <string>
#include <vector>

#include "common/security/certificate.h"

namespace shoal {

// Returns certificates for people: a paragraph for each, with what keeps it from being used.
std::string CertificatesText(const std::vector<CertificateDescription>& certificates);

// Returns the same as one line of JSON, an array. Dates are in RFC 3339.
std::string CertificatesJson(const std::vector<CertificateDescription>& certificates);

}  // namespace shoal
