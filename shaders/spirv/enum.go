package spirv

// The enumerants that modules use, by the numbers of the SPIR-V specification; each kind has a table of names for [Text].
type (
	capability   uint32
	execMode     uint32
	storageClass uint32
	decoration   uint32
	builtIn      uint32
	glsl         uint32 // an instruction of the extended set GLSL.std.450
)

const (
	capShader                   capability = 1
	capFloat16                  capability = 9
	capFloat64                  capability = 10
	capInt64                    capability = 11
	capSampledBuffer            capability = 46
	capGroupNonUniform          capability = 61
	capGroupNonUniformShuffle   capability = 65
	capStorageBuffer16BitAccess capability = 4433
	capStorageBuffer8BitAccess  capability = 4448
	capDenormPreserve           capability = 4464
	capSignedZeroInfNanPreserve capability = 4466
	capRoundingModeRTE          capability = 4467

	modeLocalSize                execMode = 17
	modeDenormPreserve           execMode = 4459
	modeSignedZeroInfNanPreserve execMode = 4461
	modeRoundingModeRTE          execMode = 4462

	classUniformConstant storageClass = 0
	classInput           storageClass = 1
	classWorkgroup       storageClass = 4
	classFunction        storageClass = 7
	classPushConstant    storageClass = 9
	classStorageBuffer   storageClass = 12

	decoBlock          decoration = 2
	decoArrayStride    decoration = 6
	decoBuiltIn        decoration = 11
	decoAliased        decoration = 20
	decoCoherent       decoration = 23
	decoNonWritable    decoration = 24
	decoNonReadable    decoration = 25
	decoBinding        decoration = 33
	decoDescriptorSet  decoration = 34
	decoOffset         decoration = 35
	decoFPRoundingMode decoration = 39
	decoNoContraction  decoration = 42

	builtInNumWorkgroups      builtIn = 24
	builtInWorkgroupID        builtIn = 26
	builtInLocalInvocationID  builtIn = 27
	builtInGlobalInvocationID builtIn = 28

	builtInSubgroupID                builtIn = 40
	builtInSubgroupLocalInvocationID builtIn = 41

	glslRoundEven   glsl = 2
	glslTrunc       glsl = 3
	glslFAbs        glsl = 4
	glslSAbs        glsl = 5
	glslFloor       glsl = 8
	glslCeil        glsl = 9
	glslSin         glsl = 13
	glslCos         glsl = 14
	glslTan         glsl = 15
	glslAsin        glsl = 16
	glslAcos        glsl = 17
	glslAtan        glsl = 18
	glslSinh        glsl = 19
	glslCosh        glsl = 20
	glslTanh        glsl = 21
	glslAtan2       glsl = 25
	glslPow         glsl = 26
	glslExp         glsl = 27
	glslLog         glsl = 28
	glslExp2        glsl = 29
	glslLog2        glsl = 30
	glslSqrt        glsl = 31
	glslInverseSqrt glsl = 32
	glslFMin        glsl = 37
	glslUMin        glsl = 38
	glslSMin        glsl = 39
	glslFMax        glsl = 40
	glslUMax        glsl = 41
	glslSMax        glsl = 42
	glslFma         glsl = 50
)

const (
	magic   = 0x07230203
	version = 0x00010300 // 1.3

	scopeDevice    = 1
	scopeWorkgroup = 2
	scopeSubgroup  = 3

	semRelaxed = 0
	// AcquireRelease, UniformMemory (which covers storage buffers) and WorkgroupMemory.
	semBarrier = 0x8 | 0x40 | 0x100

	roundRTE = 0 // FPRoundingMode

	dimBuffer = 5 // Dim
)

// enumNames gives the names of enumerants by the letter of the operand's kind in opDef.sig; "B" is BuiltIn and "r"
// FPRoundingMode, the operands of decorations; "D" is Dim and "F" ImageFormat.
var enumNames = map[byte]map[uint32]string{
	'c': {uint32(capShader): "Shader", uint32(capFloat16): "Float16", uint32(capFloat64): "Float64", uint32(capInt64): "Int64", uint32(capSampledBuffer): "SampledBuffer",
		uint32(capGroupNonUniform): "GroupNonUniform", uint32(capGroupNonUniformShuffle): "GroupNonUniformShuffle",
		uint32(capStorageBuffer16BitAccess): "StorageBuffer16BitAccess", uint32(capStorageBuffer8BitAccess): "StorageBuffer8BitAccess",
		uint32(capDenormPreserve): "DenormPreserve", uint32(capSignedZeroInfNanPreserve): "SignedZeroInfNanPreserve",
		uint32(capRoundingModeRTE): "RoundingModeRTE"},
	'a': {0: "Logical"}, 'm': {1: "GLSL450"}, 'x': {5: "GLCompute"},
	'e': {uint32(modeLocalSize): "LocalSize", uint32(modeDenormPreserve): "DenormPreserve",
		uint32(modeSignedZeroInfNanPreserve): "SignedZeroInfNanPreserve", uint32(modeRoundingModeRTE): "RoundingModeRTE"},
	'o': {uint32(classUniformConstant): "UniformConstant", uint32(classInput): "Input", uint32(classWorkgroup): "Workgroup", uint32(classFunction): "Function",
		uint32(classPushConstant): "PushConstant", uint32(classStorageBuffer): "StorageBuffer"},
	'd': {uint32(decoBlock): "Block", uint32(decoArrayStride): "ArrayStride", uint32(decoBuiltIn): "BuiltIn", uint32(decoAliased): "Aliased",
		uint32(decoCoherent): "Coherent", uint32(decoNonWritable): "NonWritable", uint32(decoNonReadable): "NonReadable",
		uint32(decoBinding): "Binding", uint32(decoDescriptorSet): "DescriptorSet", uint32(decoOffset): "Offset",
		uint32(decoFPRoundingMode): "FPRoundingMode", uint32(decoNoContraction): "NoContraction"},
	'B': {uint32(builtInNumWorkgroups): "NumWorkgroups", uint32(builtInWorkgroupID): "WorkgroupId",
		uint32(builtInLocalInvocationID): "LocalInvocationId", uint32(builtInGlobalInvocationID): "GlobalInvocationId",
		uint32(builtInSubgroupID): "SubgroupId", uint32(builtInSubgroupLocalInvocationID): "SubgroupLocalInvocationId"},
	'D': {dimBuffer: "Buffer"}, 'F': {0: "Unknown"},
	'r': {roundRTE: "RTE"}, 'f': {0: "None"}, 'l': {0: "None"}, 'b': {0: "None"},
	'g': {uint32(glslRoundEven): "RoundEven", uint32(glslTrunc): "Trunc", uint32(glslFAbs): "FAbs", uint32(glslSAbs): "SAbs",
		uint32(glslFloor): "Floor", uint32(glslCeil): "Ceil", uint32(glslSin): "Sin", uint32(glslCos): "Cos", uint32(glslTan): "Tan",
		uint32(glslAsin): "Asin", uint32(glslAcos): "Acos", uint32(glslAtan): "Atan", uint32(glslSinh): "Sinh", uint32(glslCosh): "Cosh",
		uint32(glslTanh): "Tanh", uint32(glslAtan2): "Atan2", uint32(glslPow): "Pow", uint32(glslExp): "Exp", uint32(glslLog): "Log",
		uint32(glslExp2): "Exp2", uint32(glslLog2): "Log2", uint32(glslSqrt): "Sqrt", uint32(glslInverseSqrt): "InverseSqrt",
		uint32(glslFMin): "FMin", uint32(glslUMin): "UMin", uint32(glslSMin): "SMin", uint32(glslFMax): "FMax", uint32(glslUMax): "UMax",
		uint32(glslSMax): "SMax", uint32(glslFma): "Fma"},
}
