package spirv

// opcode is the number of a SPIR-V instruction.
type opcode uint16

// The instructions that modules are made of, by the numbers of the SPIR-V specification, section 3.49.
const (
	opName               opcode = 5
	opMemberName         opcode = 6
	opExtension          opcode = 10
	opExtInstImport      opcode = 11
	opExtInst            opcode = 12
	opMemoryModel        opcode = 14
	opEntryPoint         opcode = 15
	opExecutionMode      opcode = 16
	opCapability         opcode = 17
	opTypeVoid           opcode = 19
	opTypeBool           opcode = 20
	opTypeInt            opcode = 21
	opTypeFloat          opcode = 22
	opTypeVector         opcode = 23
	opTypeImage          opcode = 25
	opTypeArray          opcode = 28
	opTypeRuntimeArray   opcode = 29
	opTypeStruct         opcode = 30
	opTypePointer        opcode = 32
	opTypeFunction       opcode = 33
	opConstantTrue       opcode = 41
	opConstantFalse      opcode = 42
	opConstant           opcode = 43
	opConstantComposite  opcode = 44
	opFunction           opcode = 54
	opFunctionEnd        opcode = 56
	opVariable           opcode = 59
	opLoad               opcode = 61
	opStore              opcode = 62
	opAccessChain        opcode = 65
	opDecorate           opcode = 71
	opMemberDecorate     opcode = 72
	opCompositeConstruct opcode = 80
	opCompositeExtract   opcode = 81
	opImageFetch         opcode = 95
	opConvertFToU        opcode = 109
	opConvertFToS        opcode = 110
	opConvertSToF        opcode = 111
	opConvertUToF        opcode = 112
	opUConvert           opcode = 113
	opSConvert           opcode = 114
	opFConvert           opcode = 115
	opBitcast            opcode = 124
	opSNegate            opcode = 126
	opFNegate            opcode = 127
	opIAdd               opcode = 128
	opFAdd               opcode = 129
	opISub               opcode = 130
	opFSub               opcode = 131
	opIMul               opcode = 132
	opFMul               opcode = 133
	opUDiv               opcode = 134
	opSDiv               opcode = 135
	opFDiv               opcode = 136
	opUMod               opcode = 137
	opUMulExtended       opcode = 151
	opLogicalEqual       opcode = 164
	opLogicalNotEqual    opcode = 165
	opLogicalOr          opcode = 166
	opLogicalAnd         opcode = 167
	opLogicalNot         opcode = 168
	opSelect             opcode = 169
	opIEqual             opcode = 170
	opINotEqual          opcode = 171
	opUGreaterThan       opcode = 172
	opSGreaterThan       opcode = 173
	opUGreaterThanEqual  opcode = 174
	opSGreaterThanEqual  opcode = 175
	opULessThan          opcode = 176
	opSLessThan          opcode = 177
	opULessThanEqual     opcode = 178
	opSLessThanEqual     opcode = 179
	opFOrdEqual          opcode = 180
	opFUnordNotEqual     opcode = 183
	opFOrdLessThan       opcode = 184
	opFOrdGreaterThan    opcode = 186
	opFOrdLessThanEqual  opcode = 188
	opFOrdGreaterEqual   opcode = 190
	opShiftRightLogical  opcode = 194
	opShiftRightArith    opcode = 195
	opShiftLeftLogical   opcode = 196
	opBitwiseOr          opcode = 197
	opBitwiseXor         opcode = 198
	opBitwiseAnd         opcode = 199
	opNot                opcode = 200
	opControlBarrier     opcode = 224
	opAtomicExchange     opcode = 229
	opAtomicCompareExch  opcode = 230
	opAtomicIAdd         opcode = 234
	opAtomicSMin         opcode = 236
	opAtomicUMin         opcode = 237
	opAtomicSMax         opcode = 238
	opAtomicUMax         opcode = 239
	opAtomicAnd          opcode = 240
	opAtomicOr           opcode = 241
	opPhi                opcode = 245
	opLoopMerge          opcode = 246
	opSelectionMerge     opcode = 247
	opLabel              opcode = 248
	opBranch             opcode = 249
	opBranchConditional  opcode = 250
	opReturn             opcode = 253

	opGroupNonUniformShuffleXor opcode = 346
)

// opDef describes an instruction: its name, and its operands one letter each.
//
//	T result type   R result   i id   n literal number   s literal string   v literal of the result type (OpConstant)
//	c capability   a addressing model   m memory model   x execution model   e execution mode   o storage class
//	d decoration   f function control   l loop control   b selection control   g GLSL.std.450 instruction
//	* after a letter: any number of them
type opDef struct {
	name string
	sig  string
}

var opDefs = map[opcode]opDef{
	opGroupNonUniformShuffleXor: {"OpGroupNonUniformShuffleXor", "TRiii"},
	opName:                      {"OpName", "is"}, opMemberName: {"OpMemberName", "ins"}, opExtension: {"OpExtension", "s"},
	opExtInstImport: {"OpExtInstImport", "Rs"}, opExtInst: {"OpExtInst", "TRigi*"}, opMemoryModel: {"OpMemoryModel", "am"},
	opEntryPoint: {"OpEntryPoint", "xisi*"}, opExecutionMode: {"OpExecutionMode", "ien*"}, opCapability: {"OpCapability", "c"},
	opTypeVoid: {"OpTypeVoid", "R"}, opTypeBool: {"OpTypeBool", "R"}, opTypeInt: {"OpTypeInt", "Rnn"},
	opTypeFloat: {"OpTypeFloat", "Rn"}, opTypeVector: {"OpTypeVector", "Rin"}, opTypeImage: {"OpTypeImage", "RiDnnnnF"}, opTypeArray: {"OpTypeArray", "Rii"},
	opTypeRuntimeArray: {"OpTypeRuntimeArray", "Ri"}, opTypeStruct: {"OpTypeStruct", "Ri*"},
	opTypePointer: {"OpTypePointer", "Roi"}, opTypeFunction: {"OpTypeFunction", "Ri*"},
	opConstantTrue: {"OpConstantTrue", "TR"}, opConstantFalse: {"OpConstantFalse", "TR"}, opConstant: {"OpConstant", "TRv"},
	opConstantComposite: {"OpConstantComposite", "TRi*"}, opFunction: {"OpFunction", "TRfi"}, opFunctionEnd: {"OpFunctionEnd", ""},
	opVariable: {"OpVariable", "TRo"}, opLoad: {"OpLoad", "TRi"}, opStore: {"OpStore", "ii"}, opAccessChain: {"OpAccessChain", "TRii*"},
	opDecorate: {"OpDecorate", "id"}, opMemberDecorate: {"OpMemberDecorate", "ind"},
	opCompositeConstruct: {"OpCompositeConstruct", "TRi*"}, opCompositeExtract: {"OpCompositeExtract", "TRin*"},
	opConvertFToU: {"OpConvertFToU", "TRi"}, opConvertFToS: {"OpConvertFToS", "TRi"}, opConvertSToF: {"OpConvertSToF", "TRi"},
	opConvertUToF: {"OpConvertUToF", "TRi"}, opUConvert: {"OpUConvert", "TRi"}, opSConvert: {"OpSConvert", "TRi"},
	opFConvert: {"OpFConvert", "TRi"}, opBitcast: {"OpBitcast", "TRi"}, opImageFetch: {"OpImageFetch", "TRii"},
	opSNegate: {"OpSNegate", "TRi"}, opFNegate: {"OpFNegate", "TRi"}, opIAdd: {"OpIAdd", "TRii"}, opFAdd: {"OpFAdd", "TRii"},
	opISub: {"OpISub", "TRii"}, opFSub: {"OpFSub", "TRii"}, opIMul: {"OpIMul", "TRii"}, opFMul: {"OpFMul", "TRii"},
	opUDiv: {"OpUDiv", "TRii"}, opSDiv: {"OpSDiv", "TRii"}, opFDiv: {"OpFDiv", "TRii"}, opUMod: {"OpUMod", "TRii"},
	opUMulExtended: {"OpUMulExtended", "TRii"},
	opLogicalEqual: {"OpLogicalEqual", "TRii"}, opLogicalNotEqual: {"OpLogicalNotEqual", "TRii"}, opLogicalOr: {"OpLogicalOr", "TRii"},
	opLogicalAnd: {"OpLogicalAnd", "TRii"}, opLogicalNot: {"OpLogicalNot", "TRi"}, opSelect: {"OpSelect", "TRiii"},
	opIEqual: {"OpIEqual", "TRii"}, opINotEqual: {"OpINotEqual", "TRii"},
	opUGreaterThan: {"OpUGreaterThan", "TRii"}, opSGreaterThan: {"OpSGreaterThan", "TRii"},
	opUGreaterThanEqual: {"OpUGreaterThanEqual", "TRii"}, opSGreaterThanEqual: {"OpSGreaterThanEqual", "TRii"},
	opULessThan: {"OpULessThan", "TRii"}, opSLessThan: {"OpSLessThan", "TRii"},
	opULessThanEqual: {"OpULessThanEqual", "TRii"}, opSLessThanEqual: {"OpSLessThanEqual", "TRii"},
	opFOrdEqual: {"OpFOrdEqual", "TRii"}, opFUnordNotEqual: {"OpFUnordNotEqual", "TRii"}, opFOrdLessThan: {"OpFOrdLessThan", "TRii"},
	opFOrdGreaterThan: {"OpFOrdGreaterThan", "TRii"}, opFOrdLessThanEqual: {"OpFOrdLessThanEqual", "TRii"},
	opFOrdGreaterEqual:  {"OpFOrdGreaterThanEqual", "TRii"},
	opShiftRightLogical: {"OpShiftRightLogical", "TRii"}, opShiftRightArith: {"OpShiftRightArithmetic", "TRii"},
	opShiftLeftLogical: {"OpShiftLeftLogical", "TRii"}, opBitwiseOr: {"OpBitwiseOr", "TRii"}, opBitwiseXor: {"OpBitwiseXor", "TRii"},
	opBitwiseAnd: {"OpBitwiseAnd", "TRii"}, opNot: {"OpNot", "TRi"},
	opControlBarrier: {"OpControlBarrier", "iii"}, opAtomicExchange: {"OpAtomicExchange", "TRiiii"},
	opAtomicCompareExch: {"OpAtomicCompareExchange", "TRiiiiii"}, opAtomicIAdd: {"OpAtomicIAdd", "TRiiii"},
	opAtomicSMin: {"OpAtomicSMin", "TRiiii"}, opAtomicUMin: {"OpAtomicUMin", "TRiiii"}, opAtomicSMax: {"OpAtomicSMax", "TRiiii"},
	opAtomicUMax: {"OpAtomicUMax", "TRiiii"}, opAtomicAnd: {"OpAtomicAnd", "TRiiii"}, opAtomicOr: {"OpAtomicOr", "TRiiii"},
	opPhi: {"OpPhi", "TRi*"}, opLoopMerge: {"OpLoopMerge", "iil"}, opSelectionMerge: {"OpSelectionMerge", "ib"},
	opLabel: {"OpLabel", "R"}, opBranch: {"OpBranch", "i"}, opBranchConditional: {"OpBranchConditional", "iii"},
	opReturn: {"OpReturn", ""},
}
