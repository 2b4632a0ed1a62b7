package lib

// SetConvWorkspace changes the bounds of the workspace of convolutions by way of panels until the returned function is called.
func SetConvWorkspace(bytes int, share float64) (restore func()) {
	b, s := convWorkspace, convShare
	convWorkspace, convShare = bytes, share
	return func() { convWorkspace, convShare = b, s }
}
