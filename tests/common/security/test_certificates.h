#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/security/openssl_handles.h"

namespace shoal {

// The certificates of the tests are valid from a day before this time to a day after it.
inline const absl::Time kTestNow = absl::FromUnixSeconds(1'900'000'000);

// The content of a certificate. The defaults are those of a good one. Usages are in OpenSSL's
// syntax; the certificate lacks the extension if the text is empty.
struct CertificateShape {
  std::string name = "test";
  std::vector<std::string> alternative_names = {"URI:spiffe://shoal/job/mnist/ps/0"};
  std::string constraints = "critical,CA:FALSE";
  std::string key_usage = "critical,digitalSignature";
  std::string extended_key_usage = "serverAuth,clientAuth";
  absl::Time not_before = kTestNow - absl::Hours(24);
  absl::Time not_after = kTestNow + absl::Hours(24);
};

// The shape of a CA's certificate.
CertificateShape AuthorityShape(const std::string& name);

// A certificate with its key. It can issue others, whether its shape allows that or not.
class TestCertificate {
 public:
  // Signs itself.
  explicit TestCertificate(const CertificateShape& shape);
  TestCertificate(const CertificateShape& shape, const TestCertificate& issuer);

  std::string pem() const;
  std::string der() const;
  std::string key_pem() const;

 private:
  void Make(const CertificateShape& shape, const TestCertificate& issuer);

  KeyPtr key_;
  X509Ptr certificate_;
};

}  // namespace shoal
