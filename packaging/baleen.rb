# The Homebrew formula. It builds from source, so that it needs no binaries of ours:
#
#   brew install --HEAD baleenrun/tap/baleen
#
# A release sets url and sha256 to those of its source.
class Baleen < Formula
  desc "Runs open-weight language models on this machine"
  homepage "https://github.com/baleenrun/baleen"
  license "MIT"
  head "https://github.com/baleenrun/baleen.git", branch: "main"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w -X github.com/baleenrun/baleen/internal/cli.version=#{version}"), "./cmd/baleen"
    system "go", "run", "./packaging/man", buildpath/"man"
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"baleen", "completion")
  end

  service do
    run [opt_bin/"baleen", "serve"]
    keep_alive successful_exit: false
    log_path var/"log/baleen.log"
    error_log_path var/"log/baleen.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/baleen --version") unless head?
    (testpath/"tiny").mkpath
    system bin/"baleen", "synth", testpath/"tiny/tiny.gguf", "--shape", "tiny"
    assert_match "tiny", shell_output("#{bin}/baleen show #{testpath}/tiny/tiny.gguf")
  end
end
