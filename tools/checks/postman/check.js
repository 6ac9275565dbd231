pm.test(`${pm.info.requestName} succeeds`, () => {
  const { success, code, message, detail } = pm.response.json()
  pm.expect(success, `${code} ${message}: ${detail}`).to.equal(true)
})
