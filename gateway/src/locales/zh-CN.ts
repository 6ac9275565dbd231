import { maxStatementDays, settledAfterMs } from '@workspace-wallet/contract'
import type { Locale } from './locale.ts'

const headerReasons = { MISSING: '缺失', REPEATED: '重复发送', MALFORMED: '格式错误' }
const statuses: Record<string, string> = { FROZEN: '已冻结', CLOSED: '已关闭' }

export const zhCN: Locale = {
  tag: 'zh-CN',
  sentences: {
    GA2001: () => '请在 X-Api-Key 请求头中提供 API 密钥。',
    GA2011: () => '该 API 密钥不存在。请检查 X-Api-Key；该密钥可能已被删除。',
    GA2021: ({ reason }) =>
      reason === 'EXPIRED' ? 'API 密钥已过期，请向管理员申请新的密钥。' : 'API 密钥已被管理员停用。',
    GA2032: () => '该 API 密钥所属的工作空间已不存在。',
    GA2034: () => '该 API 密钥的所有者已不是工作空间的成员。',
    GA2013: details => {
      if (details.reason === 'OFF')
        return details.secondsOff < 0
          ? `X-Timestamp 比服务器时间慢 ${-details.secondsOff} 秒，允许的误差为 60 秒。请同步时钟。`
          : `X-Timestamp 比服务器时间快 ${details.secondsOff} 秒，允许的误差为 60 秒。请同步时钟。`
      if (details.reason === 'MILLISECONDS')
        return `X-Timestamp 看起来是毫秒。请发送整秒，此处应为 ${details.seconds}。`
      if (details.reason === 'USED') return 'X-Nonce 已被使用过。每次请求（包括重试）都必须使用新的值。'
      const form =
        details.header === 'X-Timestamp'
          ? '以整秒表示的 Unix 时间，仅含数字'
          : '1 到 128 个可见 ASCII 字符组成的唯一字符串'
      return `${details.header} ${headerReasons[details.reason]}。它必须是${form}。`
    },
    GA2012: (details, locale) => {
      const mistake = details.mistake && locale.mistakes[details.mistake]
      if (details.reason !== 'DIFFERENT')
        return `${details.header} ${headerReasons[details.reason]}。${mistake ?? '它必须是 HMAC-SHA256 的 Base64 编码，共 44 个字符。'}`
      if (mistake) return `签名不匹配。${mistake}`
      const { method, path, timestamp, nonce, bodyHash } = details.seen
      return (
        '签名不匹配。服务器使用以下五行（以单个换行符连接）计算签名：' +
        `${method} | ${path} | ${timestamp} | ${nonce} | ${bodyHash}。请与您的内容比较；若相同，请检查 API 密钥的 secret。`
      )
    },
    GA2022: ({ address }) => `此 API 密钥不允许来自 ${address} 的请求。`,
    GA2024: ({ scope }) => `此 API 密钥缺少权限 ${scope}，请联系管理员添加。`,
    '50090201': ({ method, path, nearest }) =>
      `没有端点 ${method} ${path}。${nearest ? `您是否想用 ${nearest}？` : '请检查请求方法，以及路径的大小写和斜杠。docs/api.md 列出了所有端点。'}`,
    S012: (fault, locale) => locale.fields[fault.reason](fault),
    S001: () => '服务器内部出错。报告问题时请提供本次响应的 X-Request-Id。',
    S002: ({ retryAfterSeconds, reason }) =>
      reason === 'TOO_MANY_LISTS'
        ? `该工作空间等待中的列表请求过多。请逐个请求，并在 ${retryAfterSeconds} 秒后使用新的 nonce 重试。`
        : `服务暂时不可用，未执行任何操作。请在 ${retryAfterSeconds} 秒后使用新的 nonce 重试。`,
    S003: details =>
      details
        ? `该转账的结果未知。请使用相同的 bizId 重试，或查询订单 ${details.transferId}。`
        : '该请求的结果未知。请使用相同的请求体和新的 nonce 重试，不会重复执行。',
    S004: details =>
      details
        ? `此路径不存在。API 以 /api/v1/ 开头，说明见 ${details.documentation}。`
        : '此路径不存在。API 以 /api/v1/ 开头。',
    S013: details =>
      'reason' in details
        ? '请求体被分成过多的小块发送。请使用 Content-Length 发送，或每块至少发送 64 字节。'
        : `请求体超过 ${details.limitBytes} 字节的上限。`,
    S015: ({ reason }) =>
      reason === 'CONTENT_ENCODING'
        ? '请不要对请求体使用 Content-Encoding。'
        : '请以 UTF-8 编码的 JSON 发送请求体，并设置 Content-Type: application/json。',
    S029: ({ retryAfterSeconds }) => `请求过多，请在 ${retryAfterSeconds} 秒后重试。`,
    W001: ({ field }) => `该工作空间没有此钱包（${field}）。`,
    W002: ({ field, status }) => `${field} 指定的钱包${statuses[status] ?? '不可用'}，不能付款或收款。`,
    W003: () => '钱包中仍有资金，只有空钱包才能关闭。请先转出余额并释放预授权。',
    W004: () => '该钱包由管理员冻结，只有管理员可以解冻或关闭。',
    T001: () => '该工作空间没有此转账订单。',
    T002: () =>
      '金额超过源钱包的可用余额（不含预授权冻结的部分）。可用余额请查询 GET /api/v1/wallets/{walletId}/balance。',
    T003: ({ currency, field, held }) =>
      `此请求的币种是 ${currency}，而 ${field} 指定的${field === 'reversesTransferId' ? '转账' : '钱包'}币种是 ${held}。只能在相同币种的钱包之间转移资金。`,
    T004: () => 'sourceWalletId 和 targetWalletId 必须是两个不同的钱包。',
    T005: ({ bizId }) =>
      `bizId ${bizId} 已被其他对象使用，或此前发送的字段不同。新请求请使用新的 bizId，重试时请保持所有字段不变。`,
    T006: () => '该转账本身是冲正，不能再次冲正。请改为发起新的转账。',
    T007: ({ remaining }) => `金额超过尚未冲正的部分，最多可冲正 ${remaining}。`,
    T008: ({ limit, remaining, resetsAt }) =>
      resetsAt === null
        ? `金额超过了单笔转账和预授权的限额 ${limit}。请减小金额，或请运营方提高该 API 密钥或钱包的限额。`
        : `金额超过了每日限额 ${limit} 的剩余额度。在 ${resetsAt} 之前，最多还可支出 ${remaining}。请减小金额、等到该时间，或请运营方提高该 API 密钥或钱包的限额。`,
    H001: () => '该工作空间没有此预授权。',
    H002: ({ status }) => `该预授权已结束（${status}）。只有未结束的预授权才能使用或释放。`,
    H003: ({ remaining }) => `金额超过该预授权的剩余金额 ${remaining}。如需支付更多，请另加一笔不使用预授权的转账。`,
    H004: () => '该预授权不属于源钱包。请从预授权所属的钱包转出。',
    E001: ({ position }) =>
      `事件日志止于位置 ${position}，请使用不大于它的位置。如果您已读取过更晚的事件，说明数据库恢复到了较早的副本：请读取 head，再读取钱包，然后从该处继续。`,
    E002: () => '该工作空间没有此 Webhook。',
    E003: ({ limit }) => `一个工作空间最多有 ${limit} 个 Webhook。请删除不再需要的 Webhook。`,
  },
  atIndex: (index, sentence) => `transfers[${index}]：${sentence}`,
  fields: {
    REQUIRED: ({ field }) => `缺少 ${field}。`,
    UNKNOWN: ({ field, nearest, limit }) =>
      `未知的 ${field}。${nearest ? `您是否想用 ${nearest}？` : `可用的名称：${limit}。`}`,
    REPEATED: ({ field }) => `${field} 被重复发送，请只发送一次。`,
    NOT_A_STRING: ({ field }) => `${field} 必须是带引号的字符串${/amount$/i.test(field) ? '，例如 "1.00"' : ''}。`,
    NOT_AN_OBJECT: ({ field }) => `${field} 必须是 JSON 对象。`,
    NOT_AN_ARRAY: ({ field }) => `${field} 必须是 JSON 数组。`,
    NOT_JSON: ({ field }) => `${field} 必须是 UTF-8 编码的 JSON。`,
    EMPTY: ({ field }) => `${field} 不能为空或只含空白。可选字段可以省略。`,
    TOO_LONG: ({ field, limit }) => `${field} 最多 ${limit} 个字符。`,
    TOO_MANY: ({ field, limit }) => `${field} 最多 ${limit} 项。`,
    TOO_MANY_VALUES: ({ field, limit }) =>
      `${field} 包含的值过多：其中的名称、字符串、数字、对象和数组合计最多 ${limit} 个。`,
    BAD_CHARACTER: ({ field }) => `${field} 含有 U+0000 或不成对的代理字符。其他 Unicode 字符均可使用。`,
    NOT_ONE_LINE: ({ field }) => `${field} 含有控制字符（例如换行符或制表符）。其他 Unicode 字符均可使用。`,
    NOT_VISIBLE_ASCII: ({ field }) =>
      `${field} 只能包含可见 ASCII 字符（字母、数字和标点，不含空格），最多 64 个字符。`,
    NOT_AN_AMOUNT: ({ field }) =>
      `${field} 必须是十进制数，例如 "100.50"：小数点用句点，不用逗号，不带符号、指数或前导零。`,
    NOT_POSITIVE: ({ field }) => `${field} 必须大于零。`,
    TOO_MANY_DECIMALS: ({ field, limit }) => `${field} 最多 ${limit} 位小数，与其币种一致。`,
    TOO_MANY_DIGITS: ({ field }) => `${field} 最多 38 位数字。`,
    UNKNOWN_CURRENCY: ({ field }) => `${field} 必须是所支持币种的大写代码，例如 USD。`,
    NOT_A_BIZ_ID: ({ field }) =>
      `${field} 只能包含字母 A-Z 和 a-z、数字和 . _ : - 并以字母或数字开头，最多 64 个字符。`,
    RESERVED: ({ field, limit }) => `${field} 不能采用以下保留格式：${limit}。`,
    NOT_AN_INTEGER: ({ field }) => `${field} 必须是非负整数，仅含数字，在 JSON 中不带引号。`,
    NOT_A_POSITION: ({ field }) => `${field} 必须是位置（整数，仅含数字）或单词 head。`,
    TOO_SMALL: ({ field, limit }) =>
      field === 'from'
        ? `对账单最多覆盖 ${maxStatementDays} 天：from 不能早于 ${limit}。`
        : `${field} 不能小于 ${limit}。`,
    TOO_LARGE: ({ field, limit }) =>
      field === 'from'
        ? `from 不能晚于 to（${limit}）。`
        : field === 'at' || field === 'to'
          ? `${field} 必须在至少 ${settledAfterMs / 1000} 秒之前：不能晚于 ${limit}。`
          : `${field} 不能大于 ${limit}。`,
    NOT_A_SORT: ({ field }) => `${field} 的格式必须是 field,asc 或 field,desc。`,
    NOT_SORTABLE: ({ field, limit }) => `${field} 只能按以下字段排序：${limit}。`,
    NOT_A_TIME: ({ field }) => `${field} 必须是带时区的 ISO 8601 时间，例如 2026-01-31T12:00:00Z，或一个日期。`,
    UNESCAPED_PLUS: ({ field }) => `${field} 的时区（例如 +02:00）开头是空格，请将加号编码为 %2B。`,
    NOT_ONE_OF: ({ field, limit }) => `${field} 必须是以下之一：${limit}。`,
    NOT_A_URL: ({ field }) => `${field} 必须是 URL，例如 https://example.com/events，只含可见 ASCII 字符，不含反斜杠。`,
    HAS_CREDENTIALS: ({ field }) => `${field} 不能包含用户名或密码。请改为校验每次投递的签名。`,
    HAS_FRAGMENT: ({ field }) => `${field} 不能包含片段。请删除 # 及其后的内容。`,
    NOT_HTTPS: ({ field }) => `${field} 必须以 https:// 开头。`,
    PORT_NOT_ALLOWED: ({ field }) => `${field} 的端口必须是 443，或不小于 1024。`,
    ADDRESS_NOT_ALLOWED: ({ field }) => `${field} 含有不允许投递 Webhook 的地址。请使用可从公共互联网访问的地址。`,
    TOO_SLOW: ({ field }) => `${field} 未能在 10 秒内到达。请使用新的 nonce 重试。`,
    TOO_EXPENSIVE: ({ field, limit }) =>
      field.endsWith('Prefix')
        ? `${field} 匹配的记录过多，无法在 ${limit} 秒内列出。请使用更长的前缀。`
        : field === 'from'
          ? `对账单包含的流水过多，无法在 ${limit} 秒内汇总。请改用更短时间段的对账单并相加。`
          : `${field} 选中的记录过多，无法在 ${limit} 秒内列出。请用 createdFrom 和 createdTo 缩小范围。`,
  },
  mistakes: {
    QUERY_SIGNED: '您对查询字符串也进行了签名。请只对问号之前的路径签名。',
    URL_SIGNED: '您对 URL 进行了签名。请只对其中的路径签名：从主机名之后的斜杠开始，到问号之前为止。',
    PATH_INCOMPLETE: '您只对路径的一部分进行了签名。请对完整路径签名，包括开头的斜杠和 /api/v1。',
    PATH_ENCODING: '签名所用路径的百分号编码与实际发送的不同。请对请求行中的路径原样签名。',
    TRAILING_SLASH: '签名所用路径末尾的斜杠与实际发送的不同。请对请求行中的路径原样签名。',
    LOWER_CASE_METHOD: '签名所用的请求方法是小写。请使用大写。',
    LOWER_CASE: '您对小写的内容进行了签名。请求方法必须大写，路径和 nonce 必须与发送的完全一致。',
    TRAILING_NEWLINE: '签名内容的末尾多了一个换行符。换行符只用于分隔五行。',
    CRLF: '签名内容的各行以 CR LF 分隔。请只使用 LF。',
    SEPARATOR: '签名内容的各行没有以换行符分隔。请使用单个 LF（字节 0A）分隔。',
    LINE_ORDER: '签名内容的行序错误。正确顺序为：方法、路径、时间戳、nonce、请求体哈希。',
    LINE_MISSING: '签名内容缺少一行。请依次包含方法、路径、时间戳、nonce 和请求体哈希。',
    TIMESTAMP_MILLISECONDS: '签名所用的时间戳以毫秒为单位。请使用 X-Timestamp 的原文，以整秒为单位。',
    TIMESTAMP_DIFFERENT: '签名所用的秒数与 X-Timestamp 不同。请只读取一次时钟，并在签名内容和请求头中使用同一个值。',
    BODY_HASH_MISSING: '签名内容缺少请求体哈希。第五行是请求体的 SHA-256；没有请求体时，是空字符串的 SHA-256。',
    BODY_HASH_OF_NOTHING: '您发送了请求体，但签名所用的是空字符串的哈希。请对请求体的字节计算哈希。',
    BODY_HASH_OF_SOMETHING: '您没有发送请求体，但签名所用的是某个请求体的哈希。没有请求体时，请使用空字符串的哈希。',
    BODY_HASH_UPPER_CASE: '签名所用的请求体哈希是大写。请使用小写十六进制。',
    BODY_HASH_BASE64: '签名所用的请求体哈希是 Base64 编码。请使用小写十六进制。',
    BODY_NOT_HASHED: '您直接对请求体进行了签名。第五行必须是请求体的 SHA-256，以小写十六进制表示。',
    BODY_NEWLINE: '计算哈希的请求体与发送的请求体末尾不同：多了或少了换行符。请对实际发送的字节计算哈希。',
    BODY_SERIALIZED_AGAIN:
      '计算哈希的 JSON 与发送的 JSON 在空格、转义或字段顺序上不同。请只序列化一次，并对同一文本计算哈希和发送。',
    SECRET_WHITESPACE: '您使用的 API secret 首尾有空格或换行符。请将其去除。',
    SECRET_QUOTED: '您使用的 API secret 带有引号。请将其去除。',
    SECRET_DECODED: '您在使用 API secret 之前对其进行了解码。HMAC 的密钥就是 secret 的文本本身。',
    SECRET_ENCODED: '您在使用 API secret 之前对其进行了 Base64 编码。HMAC 的密钥就是 secret 的文本本身。',
    SECRET_IS_API_KEY: '您把 API 密钥用作了 HMAC 的密钥。请使用 API secret。',
    SECRET_AND_MESSAGE_SWAPPED: '传给 HMAC 的 API secret 与签名内容的顺序颠倒了。secret 是密钥，签名内容是数据。',
    SIGNATURE_HEX: '其值正确，但使用了十六进制。请将 HMAC 的 32 个字节以 Base64 编码发送，共 44 个字符。',
    SIGNATURE_HEX_IN_BASE64:
      '其值正确，但它是对十六进制数字的 Base64 编码。请将 HMAC 的 32 个字节以 Base64 编码发送，共 44 个字符。',
    SIGNATURE_BASE64URL:
      '其值正确，但使用了 Base64url 的字母表。请发送标准 Base64：使用 + 和 /，而不是 - 和 _，并保留末尾的 =。',
    SIGNATURE_UNPADDED: '其值正确，但缺少末尾的 =。请发送带填充的 Base64，共 44 个字符。',
  },
}
