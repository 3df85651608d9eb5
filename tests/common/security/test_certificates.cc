#include "tests/common/security/test_certificates.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>

#include "absl/strings/str_join.h"

namespace shoal {
namespace {

std::string TextOf(const BioPtr& bio) {
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &text));
  return std::string(text, size);
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_nconf_nid(nullptr, &context, nid, value.c_str()));
  ASSERT_NE(extension, nullptr) << value << ": " << TakeOpenSslError();
  ASSERT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

}  // namespace

CertificateShape AuthorityShape(const std::string& name) {
  return {.name = name,
          .alternative_names = {},
          .constraints = "critical,CA:TRUE",
          .key_usage = "critical,keyCertSign,cRLSign",
          .extended_key_usage = ""};
}

TestCertificate::TestCertificate(const CertificateShape& shape) { Make(shape, *this); }

TestCertificate::TestCertificate(const CertificateShape& shape, const TestCertificate& issuer) {
  Make(shape, issuer);
}

void TestCertificate::Make(const CertificateShape& shape, const TestCertificate& issuer) {
  static int serial = 0;
  key_.reset(EVP_EC_gen("P-256"));
  certificate_.reset(X509_new());
  X509* made = certificate_.get();
  ASSERT_EQ(X509_set_version(made, X509_VERSION_3), 1);
  ASSERT_EQ(X509_set_pubkey(made, key_.get()), 1);
  ASSERT_EQ(ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial), 1);
  const Asn1TimePtr begin(ASN1_TIME_set(nullptr, absl::ToTimeT(shape.not_before)));
  const Asn1TimePtr end(ASN1_TIME_set(nullptr, absl::ToTimeT(shape.not_after)));
  ASSERT_EQ(X509_set1_notBefore(made, begin.get()), 1);
  ASSERT_EQ(X509_set1_notAfter(made, end.get()), 1);
  ASSERT_EQ(X509_NAME_add_entry_by_NID(X509_get_subject_name(made), NID_commonName, MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(shape.name.data()),
                                       static_cast<int>(shape.name.size()), -1, 0),
            1);
  X509* signer = issuer.certificate_.get();
  ASSERT_EQ(X509_set_issuer_name(made, X509_get_subject_name(signer)), 1);
  AddExtension(made, signer, NID_basic_constraints, shape.constraints);
  AddExtension(made, signer, NID_key_usage, shape.key_usage);
  AddExtension(made, signer, NID_ext_key_usage, shape.extended_key_usage);
  AddExtension(made, signer, NID_subject_key_identifier, "hash");
  AddExtension(made, signer, NID_authority_key_identifier, "keyid:always");
  AddExtension(made, signer, NID_subject_alt_name, absl::StrJoin(shape.alternative_names, ","));
  ASSERT_NE(X509_sign(made, issuer.key_.get(), EVP_sha256()), 0);
}

std::string TestCertificate::pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(bio.get(), certificate_.get()), 1);
  return TextOf(bio);
}

std::string TestCertificate::der() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(i2d_X509_bio(bio.get(), certificate_.get()), 1);
  return TextOf(bio);
}

std::string TestCertificate::key_pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
  return TextOf(bio);
}

}  // namespace shoal
