import { expect, test } from 'vitest'
import { csvLine } from './statement-csv.ts'

test('a cell that a spreadsheet would execute is text, and RFC 4180 quotes the others', () => {
  expect(csvLine(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', 'a"b', 'a,b', 'a\nb', '', 7])).toBe(
    `'=1+1,'+1,'-1,'@SUM(A1),'\t=1,"a""b","a,b","a\nb",,7\r\n`,
  )
})
