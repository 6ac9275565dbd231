import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.*;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.*;
import java.util.function.Predicate;
import java.util.regex.*;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * A client of the wallet service. Needs Java 17 and no libraries. It makes calls signed with one API key. Amounts and
 * balances are decimal strings, never floats.
 *
 * <p>Run as a program, it transfers 1.00 between the first two wallets with the same currency:
 *
 * <pre>
 * java WalletClient.java --demo .data/demo.json
 * BASE_URL=http://127.0.0.1:8080 API_KEY=ak_... API_SECRET=... java WalletClient.java
 * </pre>
 */
public final class WalletClient {
  private static final int ATTEMPTS = 5;
  private final HttpClient http =
      // It follows no redirects, which would send signed requests to another server.
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();
  private final String baseUrl;
  private final String apiKey;
  private final String apiSecret;
  private volatile long clockOffsetMillis;

  /** A failed call. {@code code} is for programs, the text is for people. Without an answer of the service, it is null. */
  public static final class WalletException extends RuntimeException {
    public final int status;
    public final String code, detail, requestId;
    final int retryAfterSeconds;

    WalletException(String text) {
      this(text, 0, null, null, null, 0);
    }

    WalletException(String text, int status, String code, String detail, String requestId, int retryAfterSeconds) {
      super(text);
      this.status = status;
      this.code = code;
      this.detail = detail;
      this.requestId = requestId;
      this.retryAfterSeconds = retryAfterSeconds;
    }

    /** Whether to send the request again. If it may have been executed, {@code isRepeatable} decides. */
    boolean isRetryable(boolean isRepeatable) {
      if (retryAfterSeconds > 60) return false;
      if ("GA2013".equals(code) || "S002".equals(code) || status == 429) return true;
      return isRepeatable && (code == null || status >= 500);
    }
  }

  public WalletClient(String baseUrl, String apiKey, String apiSecret) {
    this.baseUrl = baseUrl.replaceFirst("/$", "");
    this.apiKey = apiKey;
    this.apiSecret = apiSecret;
  }

  /** X-Signature (section 5.2). The path is the path as sent, without the query string. */
  public static String sign(String secret, String method, String path, String timestamp, String nonce, byte[] body) {
    try {
      String bodyHash = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
      String message = String.join("\n", method.toUpperCase(Locale.ROOT), path, timestamp, nonce, bodyHash);
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
      return Base64.getEncoder().encodeToString(mac.doFinal(message.getBytes(StandardCharsets.UTF_8)));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Returns {@code data} of the response. Retries while the service is unavailable or the answer is lost.
   *
   * <p>Give each create a {@code bizId}: it prevents a second execution. Without one, a lost POST is not retried.
   *
   * @param target the path, with the query string; see {@link #percentEncode}
   * @param body null for none
   */
  public Map<String, Object> call(String method, String target, Map<String, ?> body) throws InterruptedException {
    // Serialized once: the bytes that are hashed are the bytes that are sent.
    String text = body == null ? "" : Json.write(body);
    byte[] payload = text.getBytes(StandardCharsets.UTF_8);
    boolean isRepeatable = method.equals("GET") || text.contains("\"bizId\":");
    for (int attempt = 1; ; attempt++) {
      try {
        return send(method, target, payload);
      } catch (WalletException e) {
        if (attempt == ATTEMPTS || !e.isRetryable(isRepeatable)) throw e;
        Thread.sleep(e.retryAfterSeconds > 0 ? e.retryAfterSeconds * 1000L : 100L << attempt);
      }
    }
  }

  /** Calls {@code visit} with the records of all pages of a list, until it returns false. */
  public void pages(String target, Predicate<Map<String, Object>> visit) throws InterruptedException {
    for (int page = 0; ; page++) {
      Map<String, Object> data = call("GET", target + (target.contains("?") ? "&" : "?") + "page=" + page, null);
      for (Object each : (List<?>) data.get("content")) if (!visit.test(Json.object(each))) return;
      if (page + 1 >= (Long) Json.object(data.get("page")).get("totalPages")) return;
    }
  }

  /** Creates a transfer and returns the order. With the same bizId, the money moves once. */
  public Map<String, Object> createTransfer(String source, String target, String amount, String currency, String bizId)
      throws InterruptedException {
    var body = Map.of(
        "sourceWalletId", source, "targetWalletId", target, "amount", amount, "currency", currency, "bizId", bizId);
    return call("POST", "/api/v1/transfer/command/create", body);
  }

  /** Sends one attempt, with a nonce of its own. */
  private Map<String, Object> send(String method, String target, byte[] body) throws InterruptedException {
    String timestamp = String.valueOf((System.currentTimeMillis() + clockOffsetMillis) / 1000);
    String nonce = UUID.randomUUID().toString();
    HttpResponse<String> response;
    Map<String, Object> answer;
    try {
      HttpRequest request = HttpRequest.newBuilder(URI.create(baseUrl + target))
          .timeout(Duration.ofSeconds(10))
          .method(method, body.length == 0 ? BodyPublishers.noBody() : BodyPublishers.ofByteArray(body))
          .header("X-Api-Key", apiKey)
          .header("X-Timestamp", timestamp)
          .header("X-Nonce", nonce)
          .header("X-Signature", sign(apiSecret, method, target.split("\\?")[0], timestamp, nonce, body))
          .header("X-LOCALE", "en-US")
          .header("Content-Type", "application/json")
          .build();
      response = http.send(request, BodyHandlers.ofString(StandardCharsets.UTF_8));
      answer = Json.object(Json.read(response.body()));
      if (!(answer.get("code") instanceof String)) throw new IllegalArgumentException("no code");
    } catch (IOException | IllegalArgumentException e) {
      String unknown = method.equals("POST") ? " The outcome is unknown: repeat the call with the same bizId." : "";
      throw new WalletException(baseUrl + " did not answer as the wallet service (" + e + ")." + unknown);
    }
    if (answer.get("success") == Boolean.TRUE) return Json.object(answer.get("data"));
    String code = (String) answer.get("code"), detail = (String) answer.get("detail");
    // The clock may be wrong: use that of the service. What is signed for later can be kept until then.
    if ("GA2013".equals(code))
      clockOffsetMillis = Math.min((Long) answer.get("timestamp") - System.currentTimeMillis(), 86_400_000);
    int status = response.statusCode();
    String requestId = response.headers().firstValue("X-Request-Id").orElse(null);
    String retryAfter = response.headers().firstValue("Retry-After").orElse("");
    throw new WalletException(
        "%s %s (HTTP %d, request %s): %s".formatted(code, answer.get("message"), status, requestId, detail),
        status, code, detail, requestId, retryAfter.matches("\\d{1,6}") ? Integer.parseInt(retryAfter) : 0);
  }

  public static String percentEncode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  /** The JSON that the API uses. If your project has a JSON library, use that instead. */
  static final class Json {
    private static final Pattern TOKEN =
        Pattern.compile("\"(?:[^\"\\\\]++|\\\\.)*+\"|[{}\\[\\],:]|[^\\s{}\\[\\],:\"]++");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");
    private static final Pattern TO_ESCAPE = Pattern.compile("[\\x00-\\x1f\"\\\\]");
    private final Iterator<String> tokens;

    private Json(String text) {
      tokens = TOKEN.matcher(text).results().map(MatchResult::group).iterator();
    }

    /** Returns a Map, List, String, Long, Boolean or null: the API has no fractions, because amounts are strings. */
    static Object read(String text) {
      Json json = new Json(text);
      return json.value(json.next());
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
      if (value instanceof Map<?, ?> map) return (Map<String, Object>) map;
      throw new IllegalArgumentException("not a JSON object");
    }

    static String write(Object value) {
      if (value instanceof Map<?, ?> object)
        return object.entrySet().stream()
            .map(e -> write(e.getKey()) + ":" + write(e.getValue()))
            .collect(Collectors.joining(",", "{", "}"));
      if (value instanceof List<?> list) return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
      if (!(value instanceof String text)) return String.valueOf(value);
      return '"' + TO_ESCAPE.matcher(text).replaceAll(m -> "\\\\u%04x".formatted((int) m.group().charAt(0))) + '"';
    }

    private String next() {
      if (!tokens.hasNext()) throw new IllegalArgumentException("incomplete JSON");
      return tokens.next();
    }

    private Object value(String token) {
      switch (token) {
        case "{":
          Map<String, Object> object = new LinkedHashMap<>();
          for (String key = next(); !key.equals("}"); key = next()) {
            if (key.equals(",")) key = next();
            next(); // The colon.
            object.put(unquote(key), value(next()));
          }
          return object;
        case "[":
          List<Object> list = new ArrayList<>();
          for (String item = next(); !item.equals("]"); item = next()) list.add(value(item.equals(",") ? next() : item));
          return list;
        case "true", "false":
          return token.equals("true");
        case "null":
          return null;
        default:
          return token.startsWith("\"") ? unquote(token) : Long.valueOf(token);
      }
    }

    private static String unquote(String token) {
      return ESCAPE.matcher(token.substring(1, token.length() - 1)).replaceAll(m -> Matcher.quoteReplacement(unescape(m)));
    }

    private static String unescape(MatchResult escape) {
      if (escape.group(1) != null) return String.valueOf((char) Integer.parseInt(escape.group(1), 16));
      int control = "nrtbf".indexOf(escape.group(2));
      return control < 0 ? escape.group(2) : "\n\r\t\b\f".substring(control, control + 1);
    }
  }

  /** A client with base URL, key and secret from the demo file, or, if that is null, from the environment. */
  static WalletClient open(String demoFile) {
    if (demoFile != null) {
      try {
        Map<String, Object> demo = Json.object(Json.read(Files.readString(Path.of(demoFile))));
        return new WalletClient(
            demo.get("baseUrl").toString(), demo.get("apiKey").toString(), demo.get("apiSecret").toString());
      } catch (IOException | RuntimeException e) {
        throw new WalletException(demoFile + " is not a demo.json: start the service with npm start.");
      }
    }
    var values = Stream.of("BASE_URL", "API_KEY", "API_SECRET").map(name -> System.getenv().getOrDefault(name, "")).toList();
    if (values.contains(""))
      throw new WalletException("Set BASE_URL, API_KEY, API_SECRET, or add --demo with the demo.json of npm start.");
    return new WalletClient(values.get(0), values.get(1), values.get(2));
  }

  /** Returns the first two wallets with the same currency. */
  static List<Map<String, Object>> firstPair(WalletClient client) throws InterruptedException {
    var firstByCurrency = new HashMap<Object, Map<String, Object>>();
    var pair = new ArrayList<Map<String, Object>>();
    client.pages("/api/v1/wallets?status=ACTIVE&sort=createdAt,asc&size=5", wallet -> {
      var first = firstByCurrency.putIfAbsent(wallet.get("currency"), wallet);
      if (first != null) pair.addAll(List.of(first, wallet));
      return first == null;
    });
    if (pair.isEmpty())
      throw new WalletException("No two active wallets have the same currency: create another wallet.");
    return pair;
  }

  static void runDemo(WalletClient client) throws InterruptedException {
    var pair = firstPair(client);
    var source = pair.get(0);
    var currency = source.get("currency").toString();
    var ids = pair.stream().map(wallet -> wallet.get("walletId").toString()).toList();
    printBalances(client, "before", ids, currency);
    var decimals = source.get("balance").toString().split("\\.");
    var amount = decimals.length > 1 ? "1." + "0".repeat(decimals[1].length()) : "1";
    var bizId = UUID.randomUUID().toString();
    client.createTransfer(ids.get(0), ids.get(1), amount, currency, bizId);
    var order = client.call("GET", "/api/v1/transfer/query/orders/" + percentEncode(bizId), null);
    System.out.printf("moved   %s %s as %s, %s%n",
        order.get("amount"), currency, order.get("transferId"), order.get("status"));
    printBalances(client, "after ", ids, currency);
  }

  static void printBalances(WalletClient client, String when, List<String> walletIds, String currency)
      throws InterruptedException {
    for (String id : walletIds) {
      Object balance = client.call("GET", "/api/v1/wallets/" + id + "/balance", null).get("balance");
      System.out.printf("%s  %s  %s %s%n", when, id, balance, currency);
    }
  }

  /** Prints the signature of each test vector. */
  static void printSignatures(String vectorsFile) throws IOException {
    for (Object each : (List<?>) Json.read(Files.readString(Path.of(vectorsFile)))) {
      Map<String, String> v = new HashMap<>();
      Json.object(each).forEach((name, value) -> v.put(name, value.toString()));
      byte[] body = Base64.getDecoder().decode(v.get("bodyBase64"));
      String path = v.get("target").split("\\?")[0];
      System.out.println(sign(v.get("secret"), v.get("method"), path, v.get("timestamp"), v.get("nonce"), body));
    }
  }

  public static void main(String[] args) throws InterruptedException, IOException {
    try {
      if (args.length == 0) runDemo(open(null));
      else if (args.length == 2 && args[0].equals("--demo")) runDemo(open(args[1]));
      else if (args.length == 2 && args[0].equals("--vectors")) printSignatures(args[1]);
      else throw new WalletException("Use --demo FILE, --vectors FILE or no argument.");
    } catch (WalletException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }
}
